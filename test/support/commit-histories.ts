/** Histories of commits with every kind of record that a controller starts from. */
import fc from 'fast-check'
import { noAccessChanges, type Batch, type TaskRecord } from '../../controller/ports/store.ts'
import { aBatch, aConfig, aFinalTask, anAudit, anEvent, aNode, aTask, aToken } from './store-builders.ts'

/** One change of a history; `n` selects what it is about. */
export interface Step {
  readonly what: keyof typeof CHANGES
  readonly n: number
}

export interface History {
  nextTaskSeq: number
  nextEventSeq: number
  nextAudit: number
  revision: number
  epoch: number
  keysKeptFrom: number
}

const FINAL = ['completed', 'failed', 'cancelled', 'lost'] as const
/** The number of a task that is there, or of the first one. */
const some = ({ nextTaskSeq }: History, n: number) => ({
  seq: 1 + (n % Math.max(1, nextTaskSeq - 1)),
  nextTaskSeq: Math.max(2, nextTaskSeq),
})
const group = (id: number) => ({ id: `g${id}`, description: `of ${id}`, nodeIds: [`node-${id}`] })
const secret = (n: number) => ({ owner: n % 2 === 0 ? null : 'zoë', name: `s${n % 4}` })

/** Every kind of record that a controller starts from. */
const CHANGES = {
  submit: (h: History, n: number) => ({
    tasks: [aTask({ seq: h.nextTaskSeq, name: `n${n}` })],
    nextTaskSeq: h.nextTaskSeq + 1,
  }),
  submitAndEnd: (h: History, n: number) => ({
    tasks: [aFinalTask({ seq: h.nextTaskSeq, state: FINAL[n % 4] as TaskRecord['state'] })],
    nextTaskSeq: h.nextTaskSeq + 1,
  }),
  change: (h: History, n: number) => {
    const { seq, nextTaskSeq } = some(h, n)
    return { tasks: [aTask({ seq, swapOuts: n })], nextTaskSeq }
  },
  end: (h: History, n: number) => {
    const { seq, nextTaskSeq } = some(h, n)
    return { tasks: [aFinalTask({ seq, state: FINAL[n % 4] as TaskRecord['state'] })], nextTaskSeq }
  },
  node: (_: History, n: number) => ({
    nodes: [aNode({ id: `node-${n % 5}`, ordinal: n % 3, bootCounter: n })],
  }),
  forgetNode: (_: History, n: number) => ({ forgottenNodeIds: [`node-${n % 5}`] }),
  group: (_: History, n: number) => ({ groups: [group(n % 5)] }),
  deleteGroup: (_: History, n: number) => ({ deletedGroupIds: [`g${n % 5}`] }),
  config: (h: History) => ({ config: aConfig(h.revision + 1), revision: h.revision + 1 }),
  token: (_: History, n: number) => ({
    access: { ...noAccessChanges(), tokens: [aToken({ id: `t${n % 5}`, createdAt: n % 3 })] },
  }),
  revokeToken: (_: History, n: number) => ({
    access: { ...noAccessChanges(), revokedTokenIds: [`t${n % 5}`] },
  }),
  secret: (_: History, n: number) => ({
    access: { ...noAccessChanges(), secrets: [{ ...secret(n), sealed: `v${n}`, updatedAt: n }] },
  }),
  deleteSecret: (_: History, n: number) => ({
    access: { ...noAccessChanges(), deletedSecrets: [secret(n)] },
  }),
  audit: (h: History) => ({
    access: { ...noAccessChanges(), audits: [anAudit({ seq: h.nextAudit })] },
    nextAudit: h.nextAudit + 1,
  }),
  key: (h: History, n: number) => {
    // Keys are removed in order.
    const keysKeptFrom = Math.max(h.keysKeptFrom, h.nextTaskSeq - (n % 4))
    const key = { seq: h.nextTaskSeq, key: `k${n}`, body: 'b', taskId: `task-${h.nextTaskSeq}`, at: n }
    return { submissionKeys: { added: [key], keptFromSeq: keysKeptFrom }, keysKeptFrom }
  },
  event: (h: History) => ({ events: [anEvent(h.nextEventSeq)], nextEventSeq: h.nextEventSeq + 1 }),
  takeover: (h: History) => ({ epoch: h.epoch + 1 }),
} satisfies Record<string, (history: History, n: number) => Partial<Batch & History>>

const WHATS = Object.keys(CHANGES) as (keyof typeof CHANGES)[]
export const stepArb = fc.record({ what: fc.constantFrom(...WHATS), n: fc.nat(40) })

export const newHistory = (): History => ({
  ...{ nextTaskSeq: 1, nextEventSeq: 1, nextAudit: 1, revision: 0, epoch: 1, keysKeptFrom: 0 },
})

/** The commit of a step, which continues the history. */
export function nextBatch(history: History, { what, n }: Step): Batch {
  const { nextTaskSeq, nextEventSeq, nextAudit, revision, epoch, keysKeptFrom, ...batch } = {
    ...history,
    ...(CHANGES[what](history, n) as Partial<Batch & History>),
  }
  Object.assign(history, { nextTaskSeq, nextEventSeq, nextAudit, revision, epoch, keysKeptFrom })
  const marks = { epoch, nextTaskSeq, nextEventSeq, nextDecision: 1 }
  return aBatch({ ...batch, marks })
}
