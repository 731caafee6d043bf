import { open } from 'node:fs/promises'

const HEADER_BYTES = 64
const ELF = 0x464c457f
const CLASS_64 = 2
/** Program header that names a loader of shared libraries. */
const PT_INTERP = 3
const MAX_HEADERS_BYTES = 65_536

/**
 * True if the program needs no shared library, so that it runs in any container. elf(5), 64 bits; all
 * processors of GPU hosts are little-endian.
 */
export async function isStatic(program: string): Promise<boolean> {
  const file = await open(program, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0)
    if (bytesRead < HEADER_BYTES || header.readUInt32LE(0) !== ELF || header[4] !== CLASS_64) return false
    const [at, size, count] = [header.readBigUInt64LE(32), header.readUInt16LE(54), header.readUInt16LE(56)]
    if (size < 4 || size * count > MAX_HEADERS_BYTES) return false
    const headers = Buffer.alloc(size * count)
    await file.read(headers, 0, headers.length, Number(at))
    return !Array.from({ length: count }, (_, i) => headers.readUInt32LE(i * size)).includes(PT_INTERP)
  } finally {
    await file.close()
  }
}
