// Writes a tar archive in the ustar format.

export type TarFile = { readonly name: string; readonly bytes: Uint8Array }

const block = 512

/** `time`: the modification time of all files, in milliseconds. */
export function tarOf(files: readonly TarFile[], time: number): Uint8Array {
  const parts = files.flatMap(({ name, bytes }) => [
    headerOf(name, bytes.length, time),
    bytes,
    new Uint8Array((block - (bytes.length % block)) % block),
  ])
  return Buffer.concat([...parts, new Uint8Array(2 * block)])
}

function headerOf(name: string, size: number, time: number): Uint8Array {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`the name of a file in the archive is too long: ${name}`)
  const header = Buffer.alloc(block)
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  header.write(name, 0)
  octal(0o600, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(Math.floor(time / 1000), 136, 12)
  header.write('        0', 148, 'latin1')
  header.write('ustar\u000000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}
