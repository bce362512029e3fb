// What node does itself, and what its pool of threads does for it.
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const crypto = require('crypto');
const { pipeline } = require('stream/promises');
const { spawnSync, spawn } = require('child_process');
const { Worker, isMainThread, workerData } = require('worker_threads');

if (!isMainThread) {
  fs.writeFileSync(`worker${workerData}`, 'w'.repeat(workerData * 1000));
  return;
}

async function main() {
  fs.writeFileSync('sync', 'synchronous\n');
  fs.appendFileSync('sync', 'appended\n');
  console.log(fs.readFileSync('sync', 'utf8'));
  const fd = fs.openSync('numbered', 'w+');
  fs.writeSync(fd, Buffer.alloc(1000, 'n'), 0, 1000, 500);
  fs.ftruncateSync(fd, 1200);
  fs.fsyncSync(fd);
  const buffer = Buffer.alloc(10);
  console.log(fs.readSync(fd, buffer, 0, 10, 495), buffer.toString('hex'), fs.fstatSync(fd).size);
  fs.writevSync(fd, [Buffer.from('one'), Buffer.from('two')], 0);
  fs.closeSync(fd);

  await fs.promises.mkdir('tree/a/b', { recursive: true });
  await Promise.all([...Array(20).keys()].map((i) =>
    fs.promises.writeFile(`tree/a/${i}`, 'x'.repeat(i * 100))));
  const sizes = await Promise.all([...Array(20).keys()].map(async (i) =>
    (await fs.promises.readFile(`tree/a/${i}`)).length));
  console.log(sizes.join(' '));
  await fs.promises.copyFile('tree/a/19', 'tree/copy');
  await fs.promises.rename('tree/copy', 'tree/renamed');
  await fs.promises.symlink('renamed', 'tree/link');
  await fs.promises.link('tree/renamed', 'tree/hard');
  await fs.promises.chmod('tree/hard', 0o600);
  await fs.promises.utimes('tree/hard', 1e9, 1e9);
  const stats = await fs.promises.stat('tree/link');
  console.log(stats.size, stats.nlink, stats.mtimeMs, await fs.promises.readlink('tree/link'));
  console.log((await fs.promises.readdir('tree/a')).sort().join(' '));
  await fs.promises.readFile('missing').catch((error) => console.log(error.code, error.syscall));
  try { fs.mkdirSync('tree'); } catch (error) { console.log(error.code, error.errno); }
  fs.cpSync('tree', 'tree2', { recursive: true });
  fs.rmSync('tree2/a', { recursive: true });
  const made = fs.mkdtempSync('made-');
  fs.rmdirSync(made);

  const bytes = crypto.createHash('sha512').update('seed').digest();
  fs.writeFileSync('large', Buffer.alloc(300000, bytes));
  await pipeline(fs.createReadStream('large'), zlib.createGzip(), fs.createWriteStream('large.gz'));
  await pipeline(fs.createReadStream('large.gz'), zlib.createGunzip(), fs.createWriteStream('again'));
  console.log(fs.readFileSync('large').equals(fs.readFileSync('again')));

  const done = spawnSync('sh', ['-c', 'cat sync; echo complaint >&2; exit 3'], { encoding: 'utf8' });
  console.log(done.status, done.stdout, done.stderr);
  const child = spawn('sort', ['-r'], { stdio: ['pipe', fs.openSync('sorted', 'w'), 'inherit'] });
  child.stdin.end('a\nb\nc\n');
  console.log(await new Promise((resolve) => child.on('close', resolve)));
  await Promise.all([1, 2, 3].map((workerData) => new Promise((resolve) =>
    new Worker(__filename, { workerData }).on('exit', resolve))));
  fs.unlinkSync('again');
  console.log(fs.existsSync('again'), path.resolve('sync') === fs.realpathSync('sync'));
  process.exitCode = 4;
}

main();
