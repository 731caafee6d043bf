import { HelperFault } from './helper-messages.ts'
import {
  NVML_INSUFFICIENT_SIZE,
  NVML_NOT_FOUND,
  NVML_NOT_SUPPORTED,
  NVML_SUCCESS,
  nvmlWords,
} from './nvml-codes.ts'
import { type NvmlFunctions, type ProcessList } from './nvml-functions.ts'
import { mibTaken, type ProcessMemory } from './snapshot.ts'

/** Initial and maximum number of entries; the list can grow between the query of its length and the read. */
const FIRST_ENTRIES = 128
const MAX_ENTRIES = 4096
/**
 * nvmlProcessUtilizationSample_t: pid, time in microseconds at 8, use of the multiprocessors in percent at
 * 16.
 */
const SAMPLE = { bytes: 32, time: 8, smPercent: 16 }
/** NVML_VALUE_NOT_AVAILABLE. */
const NOT_AVAILABLE = 0xffff_ffff_ffff_ffffn

/** The processes that use a GPU, according to NVML. */
export class NvmlProcesses {
  readonly #functions: NvmlFunctions
  readonly #nowMicroseconds: () => number
  /** Time of the newest sample per GPU, in the driver's microseconds. */
  readonly #seenUntil = new Map<number, bigint>()

  constructor(functions: NvmlFunctions, nowMicroseconds: () => number) {
    this.#functions = functions
    this.#nowMicroseconds = nowMicroseconds
  }

  /** Null: this GPU does not report it. A process on several lists counts once, with its largest use. */
  async memory(handle: bigint): Promise<readonly ProcessMemory[] | null> {
    const used = new Map<number, ProcessMemory>()
    let isTold = false
    for (const list of this.#functions.processLists) {
      const entries = await listProcesses(list, handle)
      if (entries === null) continue
      isTold = true
      for (const entry of entries) {
        const before = used.get(entry.pid)?.usedMib ?? null
        const usedMib =
          before === null || entry.usedMib === null
            ? (before ?? entry.usedMib)
            : Math.max(before, entry.usedMib)
        used.set(entry.pid, { pid: entry.pid, usedMib })
      }
    }
    return isTold ? [...used.values()] : null
  }

  /** Processes that ran a kernel since the last call for this GPU; null: not reported. */
  async busy(index: number, handle: bigint): Promise<readonly number[] | null> {
    const read = this.#functions.processUtilization
    if (read === null) return null
    const since = this.#seenUntil.get(index) ?? BigInt(this.#nowMicroseconds())
    const count = Buffer.alloc(4)
    count.writeUInt32LE(MAX_ENTRIES)
    const samples = Buffer.alloc(MAX_ENTRIES * SAMPLE.bytes)
    const code = await read(handle, samples, count, since)
    if (!this.#seenUntil.has(index)) this.#seenUntil.set(index, since)
    if (code === NVML_NOT_FOUND) return []
    if (code !== NVML_SUCCESS) return null
    const busy = new Set<number>()
    let newest = since
    for (let entry = 0; entry < Math.min(count.readUInt32LE(), MAX_ENTRIES); entry++) {
      const offset = entry * SAMPLE.bytes
      const time = samples.readBigUInt64LE(offset + SAMPLE.time)
      if (time > newest) newest = time
      if (time > since && samples.readUInt32LE(offset + SAMPLE.smPercent) > 0)
        busy.add(samples.readUInt32LE(offset))
    }
    this.#seenUntil.set(index, newest)
    return [...busy]
  }
}

/** Null: this GPU has no such list. */
async function listProcesses(from: ProcessList, handle: bigint): Promise<ProcessMemory[] | null> {
  for (let room = FIRST_ENTRIES; ; room = Math.min(room * 4, MAX_ENTRIES)) {
    const count = Buffer.alloc(4)
    count.writeUInt32LE(room)
    const entries = Buffer.alloc(room * from.entryBytes)
    const code = await from.list(handle, count, entries)
    if (code === NVML_SUCCESS) return decode(entries, Math.min(count.readUInt32LE(), room), from.entryBytes)
    if (code === NVML_NOT_SUPPORTED) return null
    if (code !== NVML_INSUFFICIENT_SIZE || room === MAX_ENTRIES) {
      throw new HelperFault({ kind: 'driver', message: `${from.name}: ${nvmlWords(code)}`, code })
    }
  }
}

function decode(entries: Buffer, count: number, entryBytes: number): ProcessMemory[] {
  return Array.from({ length: count }, (_, entry) => {
    const offset = entry * entryBytes
    const used = entries.readBigUInt64LE(offset + 8)
    return {
      pid: entries.readUInt32LE(offset),
      usedMib: used === NOT_AVAILABLE ? null : mibTaken(Number(used)),
    }
  })
}
