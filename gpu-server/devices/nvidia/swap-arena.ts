/**
 * Swaps processes through a node-wide arena of pinned host memory that is kept. Runs inside the CUDA helper.
 * The arena has the only copy of what it holds: a record of each process is on the disk before the driver
 * gives up the original, and is removed when the process has its bytes again.
 */
import { rmSync } from 'node:fs'
import { errorText } from '../../../protocol/error-text.ts'
import type { Mib } from '../../../protocol/units.ts'
import { arenaFault } from './helper-messages.ts'
import { bootIn, startTimeIn } from './process-facts.ts'
import {
  type AnyRecord,
  type ArenaOwner,
  type ArenaRecord,
  ArenaRecords,
  isDamaged,
} from './arena-records.ts'
import { ArenaFile } from './arena-file.ts'
import { copyAll, layOut, pieceCount } from './arena-copies.ts'
import { endOf, type Extent, extentsOf, freeExtents, piecesOf, takePieces } from './arena-extents.ts'
import type { StorageCalls, StorageOperation } from './storage-calls.ts'

const MIB = 1024 * 1024
const SWEEP_MS = 1_000

/** Location of a server's arena. */
export interface ArenaPlace {
  /** Path of a file on tmpfs. */
  readonly file: string
  /** Folder of the records, on a disk. */
  readonly records: string
  /** 0: nothing new is stored; what an earlier server stored is restored. */
  readonly bytes: number
  readonly pieceBytes: number
}

export interface SwapArenaParts {
  readonly place: ArenaPlace
  readonly storage: () => Promise<StorageCalls>
  /** CUprocessState. */
  readonly state: (pid: number) => Promise<number>
  readonly ffiModule: string
  readonly proc: string
  readonly onNote: (line: string) => void
}

interface Opened {
  readonly file: ArenaFile
  readonly storage: StorageCalls
}

const RUNNING = 0
const LOCKED = 1

export class SwapArena {
  readonly #parts: SwapArenaParts
  readonly #records: ArenaRecords
  readonly #boot: string
  #opened: Promise<Opened> | null = null
  #file: ArenaFile | null = null
  /** Pieces for a swap-out that has not stored anything yet, by pid. */
  readonly #reserved = new Map<number, ArenaOwner & { readonly extents: readonly Extent[] }>()
  /** Pieces that have no owner and still have bytes of the last one. */
  readonly #unclean = new Set<readonly Extent[]>()
  #cleaning: Promise<void> = Promise.resolve()
  readonly #pinned = new Set<number>()
  /** Processes that are being copied: their pieces are in use even after their end. */
  readonly #busy = new Set<number>()
  /** Checkpoints that cannot be completed, because their bytes were not copied. */
  readonly #abandoned = new Map<ArenaOwner, StorageOperation>()

  constructor(parts: SwapArenaParts) {
    this.#parts = parts
    this.#boot = bootIn(parts.proc)
    this.#records = new ArenaRecords(parts.place.records)
    for (const record of this.#records.all()) if (this.#isGone(record)) this.#records.remove(record)
    if (parts.place.bytes === 0 && this.#records.all().length === 0) rmSync(parts.place.file, { force: true })
    const sweep = (): void =>
      void this.#sweep().catch((cause: unknown) => parts.onNote(`not cleared: ${errorText(cause)}`))
    setInterval(sweep, SWEEP_MS).unref()
  }

  /** Rejects with HelperFault when the arena cannot be used here. */
  async open(): Promise<void> {
    await this.#open()
  }

  /**
   * Takes pinned pieces for the memory of a process; false: there is no room.
   * @param mibs by GPU
   * @param freshMib host memory that the arena may still take
   */
  async reserve(pid: number, mibs: readonly Mib[], freshMib: Mib): Promise<boolean> {
    const { place } = this.#parts
    const { file, storage } = await this.#open()
    await this.#forgetGone()
    const owner = this.#ownerOf(pid)
    const earlier = this.#recordOf(pid)
    // It runs: the record is left from a swap-out that did not end.
    if (earlier !== null && (await this.#parts.state(pid)) === RUNNING)
      this.#forget(earlier, extentsIn(earlier))
    else if (earlier !== null) return false
    this.#checkRecords()
    this.unreserve(pid)
    const count = mibs.reduce((sum, mib) => sum + Math.ceil((mib * MIB) / place.pieceBytes), 0)
    const isWarm = (piece: number): boolean => file.isWarm(piece)
    const take = (): ReturnType<typeof takePieces> => takePieces(this.#total, this.#taken(), count, isWarm)
    const extents = take() ?? (await this.#cleaning.then(take))
    if (extents === null) return false
    const fresh = piecesOf(extents).filter((piece) => !file.isWarm(piece)).length
    if (fresh * place.pieceBytes > freshMib * MIB) return false
    this.#reserved.set(pid, { ...owner, extents })
    try {
      await this.#pin({ file, storage }, extents)
      return true
    } catch (cause) {
      this.unreserve(pid)
      throw cause
    }
  }

  /** Nothing was stored in these pieces. */
  unreserve(pid: number): void {
    this.#reserved.delete(pid)
  }

  /**
   * Moves the memory of a locked process into the pieces reserved for it. If that fails the process is still
   * locked, or nothing can continue it: the driver does not undo what it has begun.
   */
  async store(pid: number): Promise<void> {
    const { file, storage } = await this.#open()
    const owner = this.#ownerOf(pid)
    const record = { ...owner, boot: this.#boot, arena: file.id, devices: [] }
    this.#records.write({ ...record, phase: 'storing' })
    this.#busy.add(pid)
    let isStored = false
    try {
      const operation = await storage.checkpoint(pid)
      const devices = await this.#copyOut(owner, operation).catch((cause: unknown) => {
        this.#abandoned.set(owner, operation)
        throw cause
      })
      this.#writeStored({ ...record, phase: 'stored', devices })
      isStored = true
      await storage.complete(operation)
    } catch (cause) {
      const extents = this.#reserved.get(pid)?.extents ?? []
      const state = await this.#parts.state(pid).catch(() => null)
      if (state === LOCKED || state === RUNNING) this.#forget(owner, extents)
      else if (!isStored) this.#clean(extents)
      throw cause
    } finally {
      this.unreserve(pid)
      this.#busy.delete(pid)
    }
  }

  /** True if the arena has the bytes of this checkpointed process, which then are back on its GPUs. */
  async restore(pid: number): Promise<boolean> {
    const record = this.#recordOf(pid)
    if (record === null) return false
    await this.#load(record)
    return true
  }

  /**
   * Before a locked process continues, or is checkpointed in another way: if a restore did not end, it is
   * done again; otherwise its bytes never left the GPUs, and the arena forgets it. Rejects with HelperFault
   * where it must stay locked.
   */
  async settle(pid: number): Promise<void> {
    const record = this.#recordOf(pid)
    if (record === null) return
    if ((await this.#parts.state(pid)) !== LOCKED) return
    if (record.phase !== 'restoring') return this.#forget(record, extentsIn(record))
    await this.#emptyAgain(pid)
    await this.#load(record)
  }

  get #total(): number {
    return Math.floor(this.#parts.place.bytes / this.#parts.place.pieceBytes)
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#openOnce().catch((cause: unknown) => {
      this.#opened = null
      throw cause
    })
    return this.#opened
  }

  async #openOnce(): Promise<Opened> {
    const { place, ffiModule } = this.#parts
    const storage = await this.#parts.storage()
    const file = (this.#file ??= await ArenaFile.open(place.file, place.pieceBytes, ffiModule))
    if (this.#damage() === null) {
      file.resize(Math.max(this.#total, endOf(this.#taken())))
      // Pages without an owner may have the bytes of a task that has ended.
      await file.drop(freeExtents(file.pieces, this.#taken()))
    } else file.resize(Math.max(this.#total, file.pieces))
    return { file, storage }
  }

  async #load(record: ArenaRecord): Promise<void> {
    const { pid } = record
    const path = this.#parts.place.file
    if (record.phase === 'storing') throw arenaFault(whyLost(pid, 'the swap-out did not end'))
    const { file, storage } = await this.#open()
    if (record.arena !== file.id) throw arenaFault(whyLost(pid, `${path} was removed or replaced`))
    const extents = extentsIn(record)
    if (!piecesOf(extents).every((piece) => file.isWarm(piece)))
      throw arenaFault(whyLost(pid, `${path} was cut off`))
    this.#busy.add(pid)
    try {
      await this.#pin({ file, storage }, extents)
      if (record.phase === 'stored') this.#records.write({ ...record, phase: 'restoring' })
      const operation = await storage.restore(pid)
      await this.#copy('in', operation, record.devices).catch(async (cause: unknown) => {
        await this.#undo(pid, operation)
        throw cause
      })
      await storage.complete(operation)
      this.#forget(record, extents)
    } finally {
      this.#busy.delete(pid)
    }
  }

  async #copyOut(
    { pid, startTime }: ArenaOwner,
    operation: StorageOperation,
  ): Promise<ArenaRecord['devices']> {
    const { file, storage } = await this.#open()
    const { memories } = operation
    const held = this.#reserved.get(pid)?.extents ?? []
    const missing = pieceCount(memories, this.#parts.place.pieceBytes) - piecesOf(held).length
    const more = missing > 0 ? this.#takeMore(file, missing) : []
    const extents = extentsOf([...piecesOf(held), ...piecesOf(more)])
    this.#reserved.set(pid, { pid, startTime, extents })
    await this.#pin({ file, storage }, extents)
    const devices = layOut(memories, this.#parts.place.pieceBytes, piecesOf(extents))
    await this.#copy('out', operation, devices)
    return devices
  }

  /** The bytes are safe from here on, unless the disk fails: then only until this process ends. */
  #writeStored(record: ArenaRecord): void {
    try {
      this.#records.write(record)
    } catch (cause) {
      this.#parts.onNote(`the record of process ${record.pid} is not on the disk: ${errorText(cause)}`)
    }
  }

  /** Tries twice: until the operation is completed, both copies are there. */
  async #copy(
    direction: 'out' | 'in',
    { memories }: StorageOperation,
    devices: ArenaRecord['devices'],
  ): Promise<void> {
    const { file, storage } = await this.#open()
    const { pieceBytes } = this.#parts.place
    const copy = (): Promise<void> =>
      copyAll({ direction, storage, memories, devices, pieceBytes, address: (piece) => file.address(piece) })
    await copy().catch((cause: unknown) => {
      this.#parts.onNote(`a copy is tried again: ${errorText(cause)}`)
      return copy()
    })
  }

  /** Ends a restore without the bytes, and checkpoints the process again, which was locked all the time. */
  async #undo(pid: number, operation: StorageOperation): Promise<void> {
    const { storage } = await this.#open()
    try {
      await storage.complete(operation)
      await this.#emptyAgain(pid)
    } catch (cause) {
      this.#parts.onNote(`the restore of process ${pid} is not undone: ${errorText(cause)}`)
    }
  }

  /** Checkpoints a locked process whose bytes are in the arena, without copying. */
  async #emptyAgain(pid: number): Promise<void> {
    const { storage } = await this.#open()
    await storage.complete(await storage.checkpoint(pid))
  }

  async #pin({ file, storage }: Opened, extents: readonly Extent[]): Promise<void> {
    for (const piece of piecesOf(extents)) {
      if (this.#pinned.has(piece)) continue
      if (!file.isWarm(piece)) await file.allocate(piece)
      storage.register(file.address(piece), this.#parts.place.pieceBytes)
      this.#pinned.add(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** The driver reports more memory than was reserved: losing it would be worse than a larger arena. */
  #takeMore(file: ArenaFile, count: number): readonly Extent[] {
    const taken = this.#taken()
    const total = Math.max(this.#total, endOf(taken)) + count
    const more = takePieces(total, taken, count, (piece) => file.isWarm(piece)) ?? []
    if (endOf(more) > file.pieces) file.resize(endOf(more))
    return more
  }

  #forget(owner: ArenaOwner, extents: readonly Extent[]): void {
    if (this.#records.of(owner) !== null) this.#records.remove(owner)
    this.#reserved.delete(owner.pid)
    if (extents.length > 0) this.#clean(extents)
  }

  #clean(extents: readonly Extent[]): void {
    this.#unclean.add(extents)
    const cleaned = this.#cleaning.then(async () => {
      const { file } = await this.#open()
      await file.clear(extents)
      this.#unclean.delete(extents)
    })
    this.#cleaning = cleaned.catch((cause: unknown) => {
      this.#parts.onNote(`pieces of the swap arena are not used again: ${errorText(cause)}`)
    })
  }

  /** Frees what belonged to processes that have ended. */
  async #sweep(): Promise<void> {
    await this.#forgetGone()
    for (const [pid, owner] of this.#reserved)
      if (this.#isGone(owner) && !this.#busy.has(pid)) this.unreserve(pid)
    for (const [owner, operation] of this.#abandoned) {
      if (!this.#isGone(owner)) continue
      this.#abandoned.delete(owner)
      // Only completing it unmaps its GPU memory from this process; the result has no meaning any more.
      await this.#opened?.then(({ storage }) => storage.complete(operation)).catch(() => {})
    }
  }

  async #forgetGone(): Promise<void> {
    for (const record of this.#records.all()) {
      if (!this.#isGone(record) || this.#busy.has(record.pid)) continue
      this.#forget(record, isDamaged(record) ? [] : extentsIn(record))
      if (isDamaged(record) && this.#opened !== null) await this.#cleanUnowned()
    }
  }

  /** The location of a damaged record's data is unknown. */
  async #cleanUnowned(): Promise<void> {
    const { file } = await this.#open()
    const free = piecesOf(freeExtents(file.pieces, this.#taken()))
    this.#clean(extentsOf(free.filter((piece) => file.isWarm(piece))))
  }

  #taken(): readonly Extent[] {
    return [
      ...this.#records.all().flatMap((record) => (isDamaged(record) ? [] : extentsIn(record))),
      ...[...this.#reserved.values()].flatMap(({ extents }) => extents),
      ...[...this.#unclean].flat(),
    ]
  }

  #isGone(record: AnyRecord | ArenaOwner): boolean {
    if ('boot' in record && record.boot !== this.#boot) return true
    return startTimeIn(this.#parts.proc, record.pid) !== record.startTime
  }

  #ownerOf(pid: number): ArenaOwner {
    const startTime = startTimeIn(this.#parts.proc, pid)
    if (startTime === null) throw arenaFault(`process ${pid} has ended`)
    return { pid, startTime }
  }

  /** Rejects with HelperFault for a process whose record is damaged. */
  #recordOf(pid: number): ArenaRecord | null {
    const startTime = startTimeIn(this.#parts.proc, pid)
    const record = startTime === null ? null : this.#records.of({ pid, startTime })
    if (record === null || !isDamaged(record)) return record
    throw arenaFault(whyLost(pid, record.damage))
  }

  #damage(): string | null {
    return this.#records.all().find(isDamaged)?.damage ?? null
  }

  /** While a record is damaged, any piece may be in use. */
  #checkRecords(): void {
    const damage = this.#damage()
    if (damage !== null) throw arenaFault(`${damage}; nothing more is stored until its process has ended`)
  }
}

function extentsIn(record: ArenaRecord): readonly Extent[] {
  return record.devices.flatMap(({ extents }) => extents)
}

function whyLost(pid: number, why: string): string {
  return `the bytes of process ${pid} cannot be restored: ${why}`
}
