// Pictures with a palette: screenshots have few colours, so this makes them a third as large.
import { deflateSync, inflateSync } from "node:zlib";

function read(png) {
  let [width, height, channels] = [0, 0, 0];
  const parts = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") [width, height, channels] = [data.readUInt32BE(0), data.readUInt32BE(4), { 2: 3, 6: 4 }[data[9]]];
    if (type === "IDAT") parts.push(data);
    at += 12 + length;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const pixels = Buffer.alloc(height * stride);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const left = x >= channels ? pixels[y * stride + x - channels] : 0;
      const up = y ? pixels[(y - 1) * stride + x] : 0;
      const corner = y && x >= channels ? pixels[(y - 1) * stride + x - channels] : 0;
      const guess = left + up - corner;
      const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
      const predicted = [0, left, up, (left + up) >> 1, a <= b && a <= c ? left : b <= c ? up : corner][filter];
      pixels[y * stride + x] = raw[y * (stride + 1) + 1 + x] + predicted;
    }
  }
  return { width, height, channels, pixels };
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

function crc(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}

/** The same picture with the 256 colours that occur most; bright ones count more, because there are few of them. */
export function withPalette(png) {
  const { width, height, channels, pixels } = read(png);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += channels) {
    const color = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const weight = ([color, count]) => {
    const parts = [color >> 16, (color >> 8) & 255, color & 255];
    return count * (Math.max(...parts) - Math.min(...parts) > 60 ? 20 : 1);
  };
  const palette = [...counts].sort((a, b) => weight(b) - weight(a)).slice(0, 256).map(([color]) => color);
  const index = new Map(palette.map((color, at) => [color, at]));
  const nearest = (color) => {
    let [best, least] = [0, Infinity];
    palette.forEach((other, at) => {
      const far = ((color >> 16) - (other >> 16)) ** 2 + (((color >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((color & 255) - (other & 255)) ** 2;
      if (far < least) [best, least] = [at, far];
    });
    return best;
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * channels;
      const color = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
      if (!index.has(color)) index.set(color, nearest(color));
      rows[y * (width + 1) + 1 + x] = index.get(color);
    }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  return Buffer.concat([png.subarray(0, 8), chunk("IHDR", header), chunk("PLTE", colors), chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
