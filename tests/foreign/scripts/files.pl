# Perl's own buffers, system calls, processes and directories.
use strict;
use warnings;
use Fcntl qw(:flock :seek O_RDWR O_CREAT O_EXCL);
use File::Copy;
use File::Find;
use File::Path qw(make_path remove_tree);
use File::Temp;

$| = 1;
open(my $out, '>', 'lines') or die;
print $out "line $_\n" for 1 .. 1000;
close($out) or die;
open(my $in, '<', 'lines') or die;
my ($count, $size) = (0, 0);
while (<$in>) { $count++; $size += length }
print "$count lines, $size bytes, at ", tell($in), "\n";
seek($in, -10, SEEK_END);
print "the end: ", join('|', map { chomp; $_ } <$in>), "\n";
close($in);

sysopen(my $raw, 'raw', O_RDWR | O_CREAT | O_EXCL, 0640) or die;
syswrite($raw, "x" x 100, 50);
sysseek($raw, 10, SEEK_SET);
syswrite($raw, 'abc');
sysseek($raw, 8, SEEK_SET);
my $n = sysread($raw, my $bytes, 7);
print "read $n: $bytes\n";
flock($raw, LOCK_EX) or die;
truncate($raw, 40);
print -s $raw, " bytes\n";
close($raw);
print sysopen(my $again, 'raw', O_RDWR | O_CREAT | O_EXCL) ? "made\n" : "not made: $!\n";

make_path('tree/a/b', 'tree/c');
copy('lines', 'tree/a/copy') or die;
move('tree/a/copy', 'tree/c/moved') or die;
symlink('c/moved', 'tree/link') or die;
link('lines', 'tree/hard') or die;
chmod(0600, 'tree/hard');
utime(1000000000, 1000000001, 'tree/hard');
print join(' ', map { defined $_ ? $_ : '-' } (stat 'tree/hard')[2, 3, 7, 8, 9]), "\n";
print readlink('tree/link'), "\n";
my @found;
find(sub { push @found, $File::Find::name }, 'tree');
print join(' ', sort @found), "\n";
opendir(my $directory, 'tree') or die;
print join(' ', sort readdir($directory)), "\n";
closedir($directory);
print opendir($directory, 'missing') ? '' : "missing: $!\n";

my $temporary = File::Temp->new(TEMPLATE => 'temporaryXXXX');
print $temporary "gone at the end\n";
$temporary->flush;
print -s $temporary->filename, " bytes in a temporary file\n";
undef $temporary;

print `echo from backticks; exit 3`, $? >> 8, "\n";
system('sh', '-c', 'cat lines | tail -n 1');
open(my $pipe, '|-', 'sort -r > sorted') or die;
print $pipe "$_\n" for qw(b c a);
close($pipe) or die;
open($pipe, '-|', 'cat', 'sorted') or die;
print "from a pipe: $_" while <$pipe>;
close($pipe);
pipe(my $reader, my $writer) or die;
my $child = fork();
if (!$child) {
    close($reader);
    print $writer "from the child\n";
    close($writer);
    exit(5);
}
close($writer);
print <$reader>;
waitpid($child, 0);
print 'the child ended with ', $? >> 8, "\n";
{
    local ($^I, @ARGV) = ('.old', 'sorted');
    while (<>) { s/b/B/; print }
}
rename('sorted', 'tree/sorted') or die;
unlink('sorted.old') == 1 or die;
print unlink('missing') ? '' : "missing: $!\n";
remove_tree('tree/a');
exec('perl', '-e', 'open(F, ">", "after-exec"); print F "done\n"; close F; exit 9');
