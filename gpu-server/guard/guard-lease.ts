import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeSync,
} from 'node:fs'

const CHECK = 0x48454144524f4f4dn
const BYTES = 24

/**
 * The file through which the server passes its run lease to all guards. They map it, so the same file serves
 * every server of one boot of the host; after another boot its times are invalid.
 */
export class LeaseFile {
  readonly path: string
  readonly #file: number

  constructor(folder: string) {
    const name = `lease.${bootId()}`
    for (const old of readdirSync(folder))
      if (old.startsWith('lease.') && old !== name) rmSync(`${folder}/${old}`, { force: true })
    this.path = `${folder}/${name}`
    const isNew = !existsSync(this.path)
    this.#file = openSync(this.path, isNew ? 'w+' : 'r+', 0o600)
    if (isNew) {
      ftruncateSync(this.#file, BYTES)
      this.write(0, 0)
    }
  }

  /** Both in ms; the first is CLOCK_BOOTTIME. */
  write(untilMono: number, lengthMs: number): void {
    const until = BigInt(Math.max(0, Math.floor(untilMono)))
    const length = BigInt(Math.max(0, Math.floor(lengthMs)))
    const words = BigUint64Array.of(until, length, until ^ length ^ CHECK)
    writeSync(this.#file, new Uint8Array(words.buffer), 0, BYTES, 0)
  }

  close(): void {
    closeSync(this.#file)
  }
}

export function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
}
