// Runs a WASI program under node: `node wasi.mjs PROGRAM [ARGUMENT...]`, with the environment of this process and the current folder as its root.
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const wasi = new WASI({ version: 'preview1', args: process.argv.slice(2), env: process.env, preopens: { '/': '.' }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
if (process.env.WASI_MEMORY) {
    const { rss } = process.memoryUsage();
    console.error(`memory ${instance.exports.memory.buffer.byteLength >> 20} MiB, resident ${rss >> 20} MiB`);
}
