// Runs a WASI program under node: `node wasi.mjs PROGRAM [ARGUMENT...]`, with the environment of this process and the current folder as its root.
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const wasi = new WASI({ version: 'preview1', args: process.argv.slice(2), env: process.env, preopens: { '/': '.' }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
const imports = wasi.getImportObject();
// By a function of JavaScript each: node 20 crashes when compiled code calls its own directly once the memory has grown.
for (const [name, call] of Object.entries(imports.wasi_snapshot_preview1)) {
    imports.wasi_snapshot_preview1[name] = (...values) => call(...values);
}
const instance = await WebAssembly.instantiate(module, imports);
const code = wasi.start(instance);
if (process.env.WASI_MEMORY) {
    const { rss } = process.memoryUsage();
    console.error(`memory ${instance.exports.memory.buffer.byteLength >> 20} MiB, resident ${rss >> 20} MiB`);
}
process.exitCode = code;
