import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../../protocol/error-text.ts'
import type { Extent } from './arena-extents.ts'

/** A process whose GPU memory is in the swap arena. */
export interface ArenaRecord extends ArenaOwner {
  /** Boot id of the kernel: the arena does not survive a restart of the host. */
  readonly boot: string
  /** Id of the file that contains the data. */
  readonly arena: string
  readonly phase: ArenaPhase
  readonly devices: readonly DeviceBytes[]
}

/**
 * - `storing`: the copy has not ended; the GPUs have the bytes until the driver is told that it has.
 * - `stored`: the arena has all bytes.
 * - `restoring`: the same. What the GPUs have is not known to be complete, whatever the driver reports.
 */
export type ArenaPhase = 'storing' | 'stored' | 'restoring'

export interface ArenaOwner {
  readonly pid: number
  /**
   * Start time in clock ticks since boot. It distinguishes the process from a later one with the same pid.
   */
  readonly startTime: number
}

export interface DeviceBytes {
  readonly uuid: string
  readonly bytes: number
  /** Extents in the order of the data. */
  readonly extents: readonly Extent[]
}

/** A record that cannot be read: its name tells the process, not where the bytes are. */
export interface DamagedRecord extends ArenaOwner {
  readonly damage: string
}

export type AnyRecord = ArenaRecord | DamagedRecord

const MAGIC = 'headroom-swap-arena 1'

/**
 * A file per process, written durably: it outlives the helper and the server, as the bytes do. The first line
 * has the length and the SHA-256 of the rest.
 */
export class ArenaRecords {
  readonly #folder: string
  readonly #byPid = new Map<number, AnyRecord>()

  constructor(folder: string) {
    this.#folder = folder
    for (const name of namesIn(folder)) {
      const [pid = NaN, startTime = NaN] = name.split('-').map(Number)
      if (!/^\d+-\d+$/.test(name)) rmSync(join(folder, name), { force: true })
      else this.#byPid.set(pid, readRecord(join(folder, name), { pid, startTime }))
    }
  }

  all(): readonly AnyRecord[] {
    return [...this.#byPid.values()]
  }

  of({ pid, startTime }: ArenaOwner): AnyRecord | null {
    const found = this.#byPid.get(pid)
    return found?.startTime === startTime ? found : null
  }

  /** Returns when the record is on the disk; if that fails, it is known only here. */
  write(record: ArenaRecord): void {
    this.#byPid.set(record.pid, record)
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const text = JSON.stringify(record)
    const path = join(this.#folder, nameOf(record))
    const file = openSync(`${path}.new`, 'w', 0o600)
    try {
      writeSync(file, `${MAGIC} ${Buffer.byteLength(text)} ${sha256(text)}\n${text}`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(`${path}.new`, path)
    this.#syncFolder()
  }

  remove(owner: ArenaOwner): void {
    rmSync(join(this.#folder, nameOf(owner)), { force: true })
    this.#syncFolder()
    if (this.of(owner) !== null) this.#byPid.delete(owner.pid)
  }

  #syncFolder(): void {
    const folder = openSync(this.#folder, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  }
}

export function isDamaged(record: AnyRecord): record is DamagedRecord {
  return 'damage' in record
}

function readRecord(path: string, owner: ArenaOwner): AnyRecord {
  try {
    const text = readFileSync(path, 'utf8')
    const end = text.indexOf('\n')
    const [, length, sum] = /^headroom-swap-arena 1 (\d+) ([0-9a-f]{64})$/.exec(text.slice(0, end)) ?? []
    const rest = text.slice(end + 1)
    if (Number(length) !== Buffer.byteLength(rest) || sha256(rest) !== sum)
      return { ...owner, damage: `${path} is damaged` }
    const record = JSON.parse(rest) as ArenaRecord
    return record.pid === owner.pid && record.startTime === owner.startTime
      ? record
      : { ...owner, damage: `${path} is the record of another process` }
  } catch (error) {
    return { ...owner, damage: `${path} cannot be read: ${errorText(error)}` }
  }
}

function nameOf({ pid, startTime }: ArenaOwner): string {
  return `${pid}-${startTime}`
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
