/** What pools compare of a GPU, derived once when it has changed, whatever number of indexes it stands in. */
import type { Mib } from '../../protocol/units.ts'
import type { Policy } from '../domain/config.ts'
import type { Gpu, Hold } from '../domain/node.ts'
import { commitRoomMib, isPlaceable, largestAfterSwapMib, largestEverMib, largestNowMib, NOTHING } from '../scheduler/feasible.ts'
import type { When } from '../scheduler/score.ts'
import { scoreOf } from '../scheduler/score.ts'
import type { RequestKind } from '../scheduler/shape.ts'

export interface Figures {
  /** The keys of the order in which GPUs are taken. */
  key1: Record<When, number>
  key2: Record<When, number>
  /** The largest demand it admits, its holds left aside; places by `admitsPlace`. */
  readonly admitsMib: Mib[]
  /** What makes it near to a task that misses commit room: that room, what is placed, and what it could ever take. */
  roomMib: Mib
  placedMib: Mib
  everMib: Mib
  /** Its holds, a new list whenever they change. */
  holds: readonly Hold[] | null
}

/** Which of its figures changed: those of indexes by what fits now, by what fits after a swap, by nearness. */
export const NOW = 1
export const AFTER_SWAP = 2
export const NEAR = 4

const KINDS: readonly RequestKind[] = ['swappable', 'noswap', 'exclusive']
/** Now: one place a kind. After a swap: two a kind, for P0 and the others; an exclusive task waits for no swap. */
const PLACES = 7

/** Where in `admitsMib` the answer for such a request stands. */
export function admitsPlace(when: When, kind: RequestKind, isP0: boolean): number {
  const place = KINDS.indexOf(kind)
  return when === 'now' ? place : KINDS.length + 2 * place + (isP0 ? 1 : 0)
}

export function newFigures(): Figures {
  return {
    key1: { now: 0, after_swap: 0 },
    key2: { now: 0, after_swap: 0 },
    admitsMib: Array.from({ length: PLACES }, () => NOTHING),
    roomMib: 0,
    placedMib: 0,
    everMib: NOTHING,
    holds: null,
  }
}

/** Brings the figures up to date; says which changed. */
export function deriveFigures(figures: Figures, gpu: Gpu, policy: Policy): number {
  let changed = figures.holds === gpu.holds ? 0 : NOW | AFTER_SWAP
  figures.holds = gpu.holds
  if (deriveScore(figures, gpu, 'now', policy)) changed |= NOW
  if (deriveScore(figures, gpu, 'after_swap', policy)) changed |= AFTER_SWAP
  const { maxTasksPerGpu } = policy
  const { admitsMib } = figures
  for (let place = 0; place < KINDS.length; place++) {
    const kind = KINDS[place] as RequestKind
    const nowMib = largestNowMib(gpu, kind, maxTasksPerGpu)
    if (admitsMib[place] !== nowMib) {
      admitsMib[place] = nowMib
      changed |= NOW
    }
    if (kind === 'exclusive') continue
    for (let p0 = 0; p0 <= 1; p0++) {
      const after = KINDS.length + 2 * place + p0
      const afterMib = Math.max(nowMib, largestAfterSwapMib(gpu, kind, p0 === 1, maxTasksPerGpu))
      if (admitsMib[after] === afterMib) continue
      admitsMib[after] = afterMib
      changed |= AFTER_SWAP
    }
  }
  return deriveNearness(figures, gpu) ? changed | NEAR : changed
}

function deriveScore(figures: Figures, gpu: Gpu, when: When, policy: Policy): boolean {
  const { key1, key2 } = scoreOf(gpu, when, policy.strategy)
  if (figures.key1[when] === key1 && figures.key2[when] === key2) return false
  figures.key1[when] = key1
  figures.key2[when] = key2
  return true
}

function deriveNearness(figures: Figures, gpu: Gpu): boolean {
  const roomMib = commitRoomMib(gpu)
  const placedMib = gpu.noswapMib + gpu.swappableMib
  const everMib = isPlaceable(gpu.node) ? largestEverMib(gpu) : NOTHING
  if (figures.roomMib === roomMib && figures.placedMib === placedMib && figures.everMib === everMib) return false
  figures.roomMib = roomMib
  figures.placedMib = placedMib
  figures.everMib = everMib
  return true
}
