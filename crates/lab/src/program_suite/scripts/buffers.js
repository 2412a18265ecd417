// Buffers of many sizes outside V8's heap, objects within it, and zlib.
const fs = require("fs"), zlib = require("zlib");
const text = fs.readFileSync("objects.json");
let total = 0;
for (let step = 0; step < 3; step++) {
    const objects = JSON.parse(text);
    const buffers = objects.map((one, index) => Buffer.allocUnsafeSlow(9 + (index * 7919) % 4000).fill(index));
    total += zlib.deflateSync(Buffer.concat(buffers.filter((_, index) => index % 4 == step)), { level: 1 }).length;
    total += JSON.stringify(objects).length;
}
console.log(total);
