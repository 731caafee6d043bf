/**
 * A cluster with 64 tasks on every GPU, restored as after a restart: two fifths swapped out, most others
 * idle, and one return requested.
 */
import type { Cluster } from '../../controller/state/cluster.ts'
import { restore } from '../../controller/engine/recovery.ts'
import {
  NO_HISTORY,
  type PlacementRecord,
  type StoredState,
  type TaskRecord,
} from '../../controller/ports/store.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'

export const NOW = Date.UTC(2026, 0, 2)
export const TASKS_PER_GPU = 64
const GPUS_PER_NODE = 8
const VRAM_MIB = 40_960
/** Number of tasks of 1,000 MiB that fill the resident limit. */
const RESIDENT = 38
const IDLE_SHARE = 0.7
const MIN_DEMAND_MIB = 980
const DEMAND_SPREAD_MIB = 40

export function restoreCrowdedCluster(cluster: Cluster, gpus: number): void {
  const names = Array.from({ length: gpus / GPUS_PER_NODE }, (_, i) => `n-${i}`)
  const state: StoredState = {
    openTasks: [...tasksOf(names)],
    nodes: names.map((name, ordinal) => ({
      id: nodeIdFromName(name),
      name,
      address: name,
      ordinal,
      isCordoned: false,
      drain: null,
      overcommitOverride: null,
      reserveOverrideMib: null,
      device: 'simulated',
      signalsWanted: true,
      allowExec: true,
      hostSwapMib: 2 * GPUS_PER_NODE * VRAM_MIB,
      registeredAt: 0,
      lastSeenAt: 0,
      bootCounter: 1,
      bootRandom: 'bench',
      leaseMs: 300_000,
      wasReset: false,
      gpus: Array.from({ length: GPUS_PER_NODE }, (_, index) => ({
        index,
        model: 'A100-40',
        physicalMib: VRAM_MIB,
        foreignMib: 0,
        roundNonP0: 3,
        roundP0: 0,
      })),
    })),
    groups: [],
    config: null,
    tokens: [],
    secrets: [],
    lastAuditSeq: 0,
    submissionKeys: [],
    ...NO_HISTORY,
    marks: { epoch: 1, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1000 },
    finishedCounts: { completed: 0, failed: 0, cancelled: 0, lost: 0 },
  }
  restore(cluster, state, NOW)
}

/** Submitted in turn on all nodes, so that the tasks of one GPU are far apart in any list of all tasks. */
function* tasksOf(names: readonly string[]): Generator<TaskRecord> {
  const random = seededStream(13, 'bench/crowd')
  const ids = names.map(nodeIdFromName)
  let seq = 0
  for (let place = 0; place < TASKS_PER_GPU; place++) {
    for (let gpu = 0; gpu < GPUS_PER_NODE; gpu++) {
      for (const nodeId of ids) {
        seq += 1
        const isReturning = place === TASKS_PER_GPU - 1
        const demandMib = (isReturning ? 3 : 1) * (MIN_DEMAND_MIB + Math.floor(random() * DEMAND_SPREAD_MIB))
        yield {
          ...PLAIN,
          id: `t${seq}`,
          name: `t${seq}`,
          seq,
          vramMib: demandMib,
          priority: random() < 0.1 ? 0 : 2,
          placement: placementOf(nodeId, gpu, place, demandMib, random),
        }
      }
    }
  }
}

function placementOf(
  nodeId: string,
  gpu: number,
  place: number,
  demandMib: number,
  random: () => number,
): PlacementRecord {
  const isResident = place < RESIDENT
  const lastSwapOut = Math.floor(random() * 20)
  return {
    nodeId,
    gpus: [gpu],
    demandMib,
    noswap: 0,
    residency: isResident ? 'resident' : 'swapped_out',
    generation: 3,
    assignedAt: 0,
    startedAt: 0,
    // Of the swapped-out tasks, the last one, which is larger, requests its return.
    wantsGpu: isResident ? random() >= IDLE_SHARE : place === TASKS_PER_GPU - 1,
    wantsSince: 0,
    idleSince: NOW - Math.floor(random() * 3_600_000),
    residentSince: 0,
    heldGrowth: null,
    stopping: null,
    isCalledBack: false,
    confirmed: { bootCounter: 1, seq: 1 },
    isInDoubt: false,
    isNoswapUntold: false,
    // Half of them were swapped out before, some in this round.
    marks: [random() < 0.5 ? null : { round: 2 + Math.floor(random() * 2), lastSwapOut }],
  }
}

const PLAIN = {
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  groups: [],
  labels: {},
  owner: null,
  command: null,
  maxRuntimeMs: null,
  onNodeLoss: 'wait',
  submittedAt: 0,
  state: 'running',
  isHeld: false,
  attempt: 1,
  pendingSince: 0,
  firstStartedAt: 0,
  finishedAt: null,
  exitCode: null,
  endReason: null,
  swapOuts: 0,
  clientWants: null,
  lastEventSeq: null,
  counters: [0, 0, 0, 0, 0],
} as const
