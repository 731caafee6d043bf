/**
 * `victim_choice_ratio`: the choice of victims on a GPU with 64 tasks, of 10,000 such GPUs, relative to a
 * search through all tasks.
 */
import { isDeepStrictEqual } from 'node:util'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import { isAboveRequest, type QueueEntry } from '../../controller/model/placement.ts'
import { victimClassOf } from '../../controller/model/victim-class.ts'
import { Cluster } from '../../controller/state/cluster.ts'
import type { LiveGpu } from '../../controller/state/facts.ts'
import { shortMib } from '../../controller/policy/swap/bytes.ts'
import { mayTake, eligibleFrom } from '../../controller/policy/swap/eligible.ts'
import type { Candidate } from '../../controller/policy/swap/order.ts'
import { markOf } from '../../controller/policy/swap/rounds.ts'
import { decideEntry } from '../../controller/policy/swap/swap.ts'
import { chooseVictims, type VictimChoice } from '../../controller/policy/swap/victims.ts'
import { NOW, restoreCrowdedCluster, TASKS_PER_GPU } from './crowded-cluster.ts'
import { collectGarbage, inShort, median, timed } from './stopwatch.ts'
import type { Reading } from './targets.ts'

const GPUS = 10_000
const SCANS_A_ROUND = 5
const CHOICES_A_ROUND = 2_000
const ROUNDS = 7

export function measureVictimChoice(): Promise<readonly Reading[]> {
  const cluster = new Cluster(
    {
      fields: { ...DEFAULT_CONFIG, default_vram_overcommit_percent: 100 },
      source: 'environment',
      revision: 0,
    },
    NOW,
    () => () => {},
  )
  restoreCrowdedCluster(cluster, GPUS)
  const entries = [...cluster.nodes.values()].flatMap((node) => node.queue)
  if (entries.length !== GPUS)
    throw new Error(`${entries.length} tasks request a return instead of one on each of ${GPUS} GPUs`)
  const scanned: number[] = []
  const chosen: number[] = []
  let victims = 0
  // Not between the rounds: a forced collection can discard compiled code, and the next round is slower.
  collectGarbage()
  for (let round = 0; round <= ROUNDS; round++) {
    // Distributed over the whole cluster, different in every round.
    const entryAt = (i: number): QueueEntry => entries[(round + i * 1987) % entries.length] as QueueEntry
    const choice = timed(() => Array.from({ length: CHOICES_A_ROUND }, (_, i) => choose(cluster, entryAt(i))))
    const scan = timed(() =>
      Array.from({ length: SCANS_A_ROUND }, (_, i) => chooseByScan(cluster, entryAt(i))),
    )
    for (const [i, byScan] of scan.result.entries())
      if (!isDeepStrictEqual(choice.result[i], byScan)) throw new Error('the scan chose others')
    victims += scan.result.reduce((sum, each) => sum + (each.covered ? each.victims.length : 0), 0)
    // The first round is a warm-up.
    if (round === 0) continue
    scanned.push(scan.cpuS / SCANS_A_ROUND)
    chosen.push(choice.cpuS / CHOICES_A_ROUND)
  }
  const perChoice = victims / (SCANS_A_ROUND * (ROUNDS + 1))
  const note =
    `${inShort(GPUS * TASKS_PER_GPU)} tasks: ${(1e6 * median(chosen)).toFixed(1)} µs against ` +
    `${(1e3 * median(scanned)).toFixed(1)} ms, ${perChoice.toFixed(1)} victims each`
  return Promise.resolve([{ name: 'victim_choice_ratio', value: median(scanned) / median(chosen), note }])
}

function choose(cluster: Cluster, entry: QueueEntry): VictimChoice {
  const decision = decideEntry(entry, entry.gpus as readonly LiveGpu[], NOW, false)
  if (decision.kind !== 'swap_out') throw new Error(`the return of ${entry.task.spec.id} is ${decision.kind}`)
  return decision.choice
}

/** The same rules over a list of all tasks, without an index per GPU. */
function chooseByScan(cluster: Cluster, entry: QueueEntry): VictimChoice {
  const hostFreeMib = entry.node.hostSwapMib - entry.node.hostUsedMib
  const shortages = entry.gpus.map((gpu) => ({
    gpu: gpu.index,
    missingMib: shortMib(gpu, entry),
    candidates: candidatesOn(cluster, gpu as LiveGpu, entry, hostFreeMib),
  }))
  return chooseVictims(shortages)
}

function candidatesOn(cluster: Cluster, gpu: LiveGpu, entry: QueueEntry, hostFreeMib: number): Candidate[] {
  const candidates: Candidate[] = []
  for (const { placement, spec } of cluster.tasks.values()) {
    if (placement === null || !placement.gpus.includes(gpu) || !mayTake(entry.task, placement)) continue
    const at = eligibleFrom(placement, cluster.policy)
    if (at === null || at > NOW || placement.demandMib * placement.gpus.length > hostFreeMib) continue
    const victimClass = victimClassOf(spec)
    const state = gpu.rounds[victimClass]
    const { round, lastSwapOut } = markOf(state, spec.id)
    const idleMs = placement.wantsGpu ? 0 : NOW - placement.idleSince
    candidates.push({
      id: spec.id,
      class: victimClass,
      isAboveRequest: isAboveRequest(placement),
      idleMs,
      mib: placement.demandMib,
      isSwappedThisRound: round === state.round,
      lastSwapOut,
    })
  }
  return candidates
}
