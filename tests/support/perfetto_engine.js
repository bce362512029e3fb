// Runs the trace processor of Perfetto, a WebAssembly program made for a browser's worker, in Node.
//     node engine.js DIRECTORY-WITH-engine_bundle.js
// Prints the port on which it listens (loopback). A POST carries one stream of RPC messages, its answer
// the replies. Ends when its standard input does, so that it never outlives the test that started it.
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');

const directory = process.argv[2];

// The bundle fetches its .wasm with a blocking request, as workers may.
class LocalRequest {
  open(method, url) {
    this.file = path.join(directory, path.basename(url));
  }
  setRequestHeader() {}
  send() {
    const bytes = fs.readFileSync(this.file);
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    this.status = 200;
  }
}

// What the bundle may see of a browser. `process` is hidden: it would believe that it is in Node.
const worker = {location: {href: `file://${directory}/engine_bundle.js`}, onmessage: null};
const complain = (...words) => process.stderr.write(words.join(' ') + '\n');
const world = {
  self: worker,
  location: worker.location,
  XMLHttpRequest: LocalRequest,
  WorkerGlobalScope: function () {},
  importScripts: () => {},
  console: {log: () => {}, info: () => {}, debug: () => {}, warn: complain, error: complain},
  process: undefined,
  window: undefined,
  document: undefined,
};
const bundle = fs.readFileSync(path.join(directory, 'engine_bundle.js'), 'utf8');
new Function(...Object.keys(world), bundle)(...Object.values(world));

let replies = [];
const channel = {onmessage: null, postMessage: (data) => replies.push(Buffer.from(data))};

function serve() {
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      replies = [];
      try {
        channel.onmessage({data: new Uint8Array(Buffer.concat(parts))});
        response.end(Buffer.concat(replies));
      } catch (error) {
        response.statusCode = 500;
        response.end(String(error));
      }
    });
  });
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
}

// The bundle is ready for its channel once it has set a handler, and for requests once it has put one
// into the channel; it says neither.
function wait(ready, then) {
  if (ready()) then();
  else setTimeout(() => wait(ready, then), 5);
}
wait(() => worker.onmessage !== null, () => {
  worker.onmessage({data: channel});
  wait(() => channel.onmessage !== null, serve);
});

process.stdin.on('end', () => process.exit(0)).resume();
