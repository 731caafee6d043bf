/**
 * The store as one controller process uses it: on a disk that may be full, slow or broken. The controller may
 * die at any point of a commit.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Event } from '../../controller/model/event.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Batch, Store, StoredState } from '../../controller/ports/store.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { PersistPoint } from '../scenario/fault.ts'
import type { FaultTally } from '../results/fault-tally.ts'

/** The disk with the store of a world's controllers. */
export interface StoreDisk {
  /** Number of faults that fill it. */
  fullCount: number
  /** Longest time until a commit is durable, and again until the controller knows; 0: at once. */
  slowMs: DurationMs
  /** Number of the next commits that fail, durable or not. */
  failingFsyncs: number
  /** Where the controller dies, one after the other. */
  readonly crashPoints: CrashPoint[]
  /** The process that opened it last, the only one that may write (opening locks a real store). */
  owner: Committer | null
}

export interface CrashPoint {
  readonly point: PersistPoint
  readonly onCrash: () => void
}

export function healthyDisk(): StoreDisk {
  return { fullCount: 0, slowMs: 0, failingFsyncs: 0, crashPoints: [], owner: null }
}

/** The process that commits. */
export interface Committer {
  readonly isOver: boolean
  die(): void
  /** The process dies with its next command: `after_answers` before, `after_effects` after it is sent. */
  dieAtNextCommand(death: CrashPoint): void
}

export interface StoreOptions {
  /** The store of the world, which survives every process. */
  readonly inner: Store
  /** The disk never fails, and no process dies. */
  readonly isReliable: boolean
  readonly disk: StoreDisk
  readonly clock: Clock
  readonly random: Random
  readonly tally: FaultTally
  /** Every event, in order, as soon as it is durable. The committing process may be dead by then. */
  readonly onDurable: (events: readonly Event[]) => void
  /** A promise was created or kept. */
  readonly onPromise: () => void
}

export interface AmongOthers {
  /** With the term that begins. */
  readonly termOf: (stored: StoredState) => StoredState
  /** As they reach the store. */
  readonly commits: (commit: Store['commit']) => Store['commit']
}

/** @param among of a controller among several: how its commits reach the store */
export function storeOf(process: Committer, o: StoreOptions, among: AmongOthers | null = null): Store {
  const { inner, disk, tally } = o
  const draw = (): number => o.random.stream('faults/store')()
  const refuse = (why: string): Promise<void> => {
    o.onPromise()
    return Promise.reject(new StoreFault(why))
  }
  const keep = (batch: Batch): Promise<void> | undefined => {
    if (disk.owner !== process)
      return refuse('another controller has taken over the store: this one must stop')
    const kept = inner.commit(batch)
    if (kept !== undefined) o.onPromise()
    else if (batch.events.length > 0) o.onDurable(batch.events)
    return kept
  }
  const later = (then: () => void): void => {
    const at = o.clock.now() + Math.floor(draw() * (disk.slowMs + 1))
    o.clock.at(at, () => process.isOver || then(), RANK_DEVICE)
  }
  const keepSlowly = (batch: Batch): Promise<void> =>
    new Promise((resolve, reject) => {
      tally.fires('slow_disk')
      later(() => {
        const kept = keep(batch)
        if (kept !== undefined) kept.catch(reject)
        else
          later(() => {
            o.onPromise()
            resolve()
          })
      })
    })
  const dieAt = ({ onCrash }: CrashPoint): Promise<void> => {
    process.die()
    onCrash()
    return never()
  }
  const commit = (batch: Batch): Promise<void> | undefined => {
    // Writes that were sent before the process died may still arrive, if the store can be reached.
    if (process.isOver && among === null) return never()
    if (disk.fullCount > 0) {
      tally.fires('disk_full')
      return refuse('the disk is full')
    }
    if (disk.failingFsyncs > 0) {
      disk.failingFsyncs -= 1
      tally.fires('fsync_error')
      const isDurable = draw() < 0.5
      if (isDurable) keep(batch)?.catch(() => {})
      return refuse('fsync failed')
    }
    const death = disk.crashPoints.shift()
    if (death?.point === 'before_persist') return dieAt(death)
    if (death?.point === 'after_persist') return keep(batch) ?? dieAt(death)
    if (death !== undefined) process.dieAtNextCommand(death)
    return disk.slowMs > 0 ? keepSlowly(batch) : keep(batch)
  }
  const load = (): ReturnType<Store['load']> => {
    disk.owner = process
    return inner.load()
  }
  if (among !== null)
    return { ...inner, load: async () => among.termOf(await load()), commit: among.commits(commit) }
  return o.isReliable ? { ...inner, load } : { ...inner, load, commit }
}

function never(): Promise<void> {
  return new Promise(() => {})
}
