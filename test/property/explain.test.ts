import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { explainFully } from '../../controller/query/preview/explain-fully.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import type { ReasonDetail, WaitExplanation, WaitReason } from '../../controller/query/explain/explain.ts'
import { WAIT_REASONS } from '../../controller/query/explain/explain.ts'
import { MAX_NAMED_NODES } from '../../controller/query/explain/explain-tally.ts'
import type { ClusterBuilder, FleetShape, Step } from '../support/cluster-builder.ts'
import { applyStep, buildFleet, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/property/explain.test.ts'
const MAX_STEPS = 60

/** The first two rows of semantics 4, and a pool without nodes: no head, no demand. */
const INFEASIBLE: readonly WaitReason[] = [
  'HELD',
  'GROUP_NOT_FOUND',
  'GROUP_EMPTY',
  'NEVER_FITS',
  'EXCEEDS_NODE_GPU_COUNT',
  'NO_NODES',
]

/** Reasons that say that less is available than needed. */
const MISSING_BYTES: readonly WaitReason[] = [
  'NEVER_FITS',
  'RESIDENCY_IMPOSSIBLE',
  'WAITING_VRAM',
  'NEVER_RESIDENT',
  'WOULD_STRAND',
  'FRAGMENTED',
  'WAITING_EXCLUSIVE_GPU',
  'NO_ELIGIBLE_VICTIM',
]

const submissionArb = stepsArb(4).map((steps) => steps.filter((step) => step.do === 'submit'))

describe('the explanation of a wait', () => {
  it('predicts exactly the placements of tasks without earlier tasks', () => {
    const property = fc.property(
      fleetShapeArb,
      stepsArb(MAX_STEPS),
      submissionArb,
      (fleet, steps, submissions) => {
        const b = buildFleet(fleet)
        for (const step of steps) applyStep(b, step)
        for (const submission of submissions) {
          // Two cycles: a head that follows a placed head reserves its GPUs from the next cycle.
          b.cycle()
          b.cycle()
          applyStep(b, submission)
          const task = b.tasks.at(-1) as LiveTask
          const { primary, queuePosition, sentence } = explained(b, task)
          b.cycle()
          const isPlaced = task.placement !== null || task.placementEntry?.hasReserved === true
          const isInTurn = b.cluster.policy.strategy !== 'fifo' || queuePosition === 1
          expect(isPlaced, sentence).toBe(primary.reason === 'QUEUED_BEHIND' && isInTurn)
        }
      },
    )
    holds(property, 100, FILE)
  })

  it("calls no pending task placeable after a cycle, except tasks behind a strict queue's head", () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryCycle(fleet, steps, (b) => {
        for (const task of b.tasks) {
          const explanation = b.explain(task)
          if (explanation?.primary.reason !== 'QUEUED_BEHIND') continue
          const isBehind = b.cluster.policy.strategy === 'fifo' && (explanation.queuePosition ?? 0) > 1
          expect(isBehind, `${task.spec.id}: ${explanation.sentence}`).toBe(true)
        }
      })
    })
    holds(property, 50, FILE)
  })

  it('exists exactly for waiting tasks, with one primary reason and the others by precedence', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryStep(fleet, steps, (b) => {
        for (const task of b.tasks) {
          const explanation = b.explain(task)
          expect(explanation !== null, task.spec.id).toBe(waits(task))
          if (explanation !== null) expectWellFormed(explanation, b)
        }
      })
    })
    holds(property, 50, FILE)
  })

  it('names a configuration reason exactly when the wait adds no demand', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryCycle(fleet, steps, (b) => {
        for (const task of b.tasks) {
          if (task.state !== 'pending' || task.placementEntry?.hasReserved === true) continue
          const { primary, sentence } = explained(b, task)
          expect(INFEASIBLE.includes(primary.reason), sentence).toBe(!task.isFeasible)
        }
      })
    })
    holds(property, 100, FILE)
  })

  it('lists the closest nodes, counts the others, and marks exactly the possible placements', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryCycle(fleet, steps, (b) => {
        for (const task of b.tasks) {
          const { nodes, victim } = explainFully(b.cluster, task, b.now)
          expect(victim === null).toBe(task.placement === null)
          expect(nodes === null).toBe(task.state !== 'pending' || task.placementEntry?.hasReserved === true)
          if (nodes === null) continue
          const isPoolNode = [...b.cluster.queueFor(task.spec).pool.nodes.keys()].map(({ id }) => id)
          expect(new Set(nodes.named.map(({ nodeId }) => nodeId))).toEqual(new Set(isPoolNode))
          const isFitting = nodes.named.some(({ reason }) => reason === null)
          const isBehind = b.cluster.policy.strategy === 'fifo' || task.isHeld
          expect(isFitting && !isBehind, `${task.spec.id}: ${explained(b, task).sentence}`).toBe(false)
        }
      })
    })
    holds(property, 30, FILE)
  })

  it('changes nothing: events are equal with and without explanations', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      const [asked, left] = [buildFleet(fleet), buildFleet(fleet)]
      for (const step of steps) {
        for (const b of [asked, left]) applyStep(b, step)
        for (const task of asked.tasks) {
          asked.explain(task)
          explainFully(asked.cluster, task, asked.now)
        }
      }
      for (const b of [asked, left]) b.cycle()
      expect(asked.events).toEqual(left.events)
    })
    holds(property, 50, FILE)
  })
})

function afterEveryStep(fleet: FleetShape, steps: readonly Step[], look: (b: ClusterBuilder) => void): void {
  const b = buildFleet(fleet)
  for (const step of steps) {
    applyStep(b, step)
    look(b)
  }
}

function afterEveryCycle(fleet: FleetShape, steps: readonly Step[], look: (b: ClusterBuilder) => void): void {
  afterEveryStep(fleet, steps, (b) => {
    b.cycle()
    look(b)
  })
}

function explained(b: ClusterBuilder, task: LiveTask): WaitExplanation {
  const explanation = b.explain(task)
  if (explanation === null) throw new Error(`task ${task.spec.id} is pending and has no explanation`)
  return explanation
}

/**
 * Pending; placed but not started; swapped out and wanting the GPU or more VRAM; resident and wanting more
 * VRAM.
 */
function waits({ state, placement }: LiveTask): boolean {
  if (placement === null) return state === 'pending'
  if (placement.startedAt === null) return true
  if (placement.residency === 'swapped_out') return placement.wantsGpu || placement.heldGrowth !== null
  return placement.entry?.kind === 'growth'
}

function expectWellFormed(
  { primary, secondary, sentence, retryAt }: WaitExplanation,
  b: ClusterBuilder,
): void {
  const reasons = secondary.map((detail) => detail.reason)
  expect([...WAIT_REASONS].filter((reason) => reasons.includes(reason))).toEqual(reasons)
  expect(reasons).not.toContain(primary.reason)
  const isVictimMissing = [primary, ...secondary].some((detail) => detail.reason === 'NO_ELIGIBLE_VICTIM')
  expect(retryAt === null || (isVictimMissing && retryAt > b.now)).toBe(true)
  expect(sentence).toMatch(/^[A-Z].*\.$/)
  expect(sentence).not.toMatch(/undefined|NaN|Infinity|null| {2}/)
  for (const detail of [primary, ...secondary]) expectWellFormedDetail(detail, b)
}

function expectWellFormedDetail(
  { reason, nodeIds, nodeCount, haveMib, needMib }: ReasonDetail,
  b: ClusterBuilder,
): void {
  expect(new Set(nodeIds).size).toBe(nodeIds.length)
  expect(nodeIds.length).toBe(Math.min(nodeCount, MAX_NAMED_NODES))
  for (const id of nodeIds) expect(b.cluster.nodes.has(id)).toBe(true)
  expect(haveMib === null || Number.isInteger(haveMib), reason).toBe(true)
  expect((haveMib === null) === (needMib === null), reason).toBe(true)
  if (haveMib !== null && needMib !== null && MISSING_BYTES.includes(reason))
    expect(haveMib, reason).toBeLessThan(needMib)
}
