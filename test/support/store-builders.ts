/**
 * Records, batches and queries for tests of stores: complete, with every special value that JSON or SQL might
 * change.
 */
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { Decision } from '../../controller/model/decision.ts'
import type { Event } from '../../controller/model/event.ts'
import type {
  AuditQuery,
  AuditRecord,
  Batch,
  ConfigRecord,
  EventQuery,
  FinishedQuery,
  NodeRecord,
  PlacementRecord,
  TaskRecord,
  TokenRecord,
} from '../../controller/ports/store.ts'

export function aTask(changes: Partial<TaskRecord> = {}): TaskRecord {
  const seq = changes.seq ?? 1
  return {
    id: `task-${seq}`,
    seq,
    name: `train ${seq}`,
    vramMib: 24_000,
    gpuCount: 2,
    gpuMode: 'shared',
    noswap: 0,
    priority: 2,
    groups: ['a100', 'h100'],
    labels: { team: 'vision', 'quote"\'': 'Zürich 🙂' },
    owner: 'alice',
    command: ['python', 'train.py', '--epochs=3'],
    image: 'registry.example/team/train:v2',
    limits: { memoryMib: 512, cpus: null, pids: 100 },
    maxRuntimeMs: 3_600_000,
    onNodeLoss: 'wait',
    submittedAt: 1_760_000_000_000,
    state: 'pending',
    isHeld: false,
    attempt: 0,
    pendingSince: 1_760_000_000_000,
    firstStartedAt: null,
    finishedAt: null,
    exitCode: null,
    endReason: null,
    swapOuts: 0,
    clientWants: null,
    lastEventSeq: 41,
    lastNodeId: null,
    counters: [9_007_199_254_740_991, 2, 3, 4, 5],
    placement: null,
    ...changes,
  }
}

export function aRunningTask(changes: Partial<TaskRecord> = {}): TaskRecord {
  const placement: PlacementRecord = {
    nodeId: 'node-1',
    gpus: [0, 3],
    demandMib: 24_000,
    noswap: 0,
    residency: 'swapped_out',
    generation: 3,
    assignedAt: 1_760_000_001_000,
    startedAt: 1_760_000_002_000,
    wantsGpu: true,
    wantsSince: 1_760_000_003_000,
    idleSince: 1_760_000_003_000,
    residentSince: 1_760_000_002_000,
    heldGrowth: { mib: 30_000, askedAt: 1_760_000_004_000 },
    stopping: { then: 'pending', reason: 'requeued by bob', endReason: null },
    confirmed: { bootCounter: 4, seq: 12 },
    isInDoubt: true,
    isNoswapUntold: true,
    isCalledBack: true,
    marks: [null, { round: 4, lastSwapOut: 17 }],
  }
  return aTask({ state: 'running', attempt: 1, placement, ...changes })
}

export function aFinalTask(changes: Partial<TaskRecord> = {}): TaskRecord {
  return aTask({ state: 'completed', finishedAt: 1_760_000_009_000, exitCode: 0, ...changes })
}

export function aNode(changes: Partial<NodeRecord> = {}): NodeRecord {
  return {
    id: 'node-1',
    name: 'gpu-01',
    address: '10.0.0.1',
    ordinal: 1,
    isCordoned: false,
    drain: { since: 1_760_000_005_000, movesAt: null, by: 'bob', event: 3 },
    overcommitOverride: 0,
    reserveOverrideMib: null,
    device: 'nvidia',
    signalsWanted: false,
    allowExec: true,
    features: ['image', 'of-a-later-version'],
    hostSwapMib: 512_000,
    registeredAt: 1_760_000_000_000,
    lastSeenAt: 1_760_000_000_000,
    bootCounter: 4,
    leaseMs: 300_000,
    wasReset: true,
    bootRandom: 'c0ffee',
    gpus: [{ index: 0, model: 'H100', physicalMib: 81_559, foreignMib: 12, roundNonP0: 3, roundP0: 0 }],
    ...changes,
  }
}

export function aConfig(revision: number): ConfigRecord {
  const fields = { ...DEFAULT_CONFIG, default_vram_overcommit_percent: revision * 10 }
  return { revision, at: 1_760_000_000_000 + revision, author: revision === 1 ? null : 'root', fields }
}

export function anEvent(seq: number, changes: Partial<Event> = {}): Event {
  const data = { from: 'pending', candidates: [{ gpu: 0, haveMib: 1 }, null, true, 'Ω'] }
  return {
    seq,
    at: 1_760_000_000_000 + seq,
    kind: 'task_placed',
    taskId: null,
    nodeId: null,
    causedBy: null,
    by: null,
    data,
    ...changes,
  }
}

/** Of a time at which nothing is too old yet. */
export function aDecision(number: number, changes: Partial<Decision> = {}): Decision {
  return {
    number,
    at: 4_000_000_000_000 + number,
    kind: 'placement',
    rule: 'fits_now',
    taskId: `task-${number}`,
    taskName: 'train "Ω"',
    nodeId: 'node-1',
    nodeName: 'a100-1',
    gpus: [0, 3],
    sentence: 'It fits.',
    causedBy: null,
    strategy: 'best_fit',
    gpusConsidered: [{ nodeId: 'node-1', nodeName: 'a100-1', gpu: 0, key1: -5, key2: 7, isChosen: true }],
    hasMoreGpus: true,
    victimIds: [],
    missing: [],
    candidates: [],
    candidatesLeftOut: 0,
    swapNumber: null,
    waitedMs: 12,
    others: [],
    othersLeftOut: 0,
    ...changes,
  }
}

export function aBatch(changes: Partial<Batch> = {}): Batch {
  return {
    tasks: [],
    nodes: [],
    forgottenNodeIds: [],
    groups: [],
    deletedGroupIds: [],
    config: null,
    events: [],
    decisions: [],
    access: null,
    submissionKeys: null,
    endsRecovery: false,
    marks: { epoch: 1, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1 },
    ...changes,
  }
}

export function finishedQuery(changes: Partial<FinishedQuery> = {}): FinishedQuery {
  return {
    states: ['completed', 'failed', 'cancelled', 'lost'],
    owner: null,
    nameContains: null,
    nodeId: null,
    beforeSeq: null,
    afterSeq: null,
    isOldestFirst: false,
    limit: 100,
    ...changes,
  }
}

export function eventQuery(changes: Partial<EventQuery> = {}): EventQuery {
  return { afterSeq: 0, taskId: null, nodeId: null, limit: 100, ...changes }
}

export function aToken(changes: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: 'k7v2m9x4q1zd',
    name: 'alice',
    role: 'submitter',
    secretHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    createdAt: 1_760_000_000_000,
    createdBy: null,
    expiresAt: 1_790_000_000_000,
    lastUsedAt: null,
    ...changes,
  }
}

export function anAudit(changes: Partial<AuditRecord> = {}): AuditRecord {
  return {
    seq: 1,
    at: 1_760_000_000_000,
    kind: 'control',
    actor: 'alice',
    role: 'operator',
    tokenId: 'k7v2m9x4q1zd',
    address: '10.0.0.7',
    requestId: '0b6f4c1e-0000-4000-8000-000000000001',
    action: 'putConfig',
    target: 'PUT /api/v1/config',
    outcome: 'accepted',
    status: null,
    code: null,
    leftOut: 0,
    ...changes,
  }
}

export function auditQuery(changes: Partial<AuditQuery> = {}): AuditQuery {
  const all = {
    beforeSeq: null,
    actor: null,
    action: null,
    outcome: null,
    targetContains: null,
    since: null,
    until: null,
  }
  return { ...all, limit: 100, ...changes }
}
