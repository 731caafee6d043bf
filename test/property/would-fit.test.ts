/**
 * Every proposed change, applied to the engine, places the task in the next cycle; a change that is one unit
 * smaller does not.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LiveNode, LiveTask } from '../../controller/state/facts.ts'
import type { WouldFit, WouldFitIf } from '../../controller/query/preview/would-fit.ts'
import { wouldFitIf } from '../../controller/query/preview/would-fit.ts'
import type { ClusterBuilder, FleetShape, Step } from '../support/cluster-builder.ts'
import { applyStep, buildFleet, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/property/would-fit.test.ts'

/** More than fits, so that some tasks wait. */
const crowdArb = stepsArb(30).map((steps) => steps.filter((step) => step.do === 'submit'))
/** In some cases all placed tasks have been idle long enough to be eligible. */
const idleSpell: readonly Step[] = [{ do: 'cycle' }, { do: 'start-all' }, { do: 'advance', seconds: 310 }]
const historyArb = fc
  .tuple(stepsArb(40), fc.boolean(), crowdArb)
  .map(([early, isIdle, crowd]): readonly Step[] => [...early, ...(isIdle ? idleSpell : []), ...crowd])

describe('the changes that would place a task', () => {
  it('place it in the next cycle if the task waits alone', () => {
    const property = fc.property(fleetShapeArb, historyArb, fc.nat(40), (fleet, steps, pick) => {
      const asked = alone(fleet, steps, pick)
      if (asked === null) return
      for (const [index, change] of asked.answer.changes.entries()) {
        if (change.entriesBefore > 0) continue
        const { b, task, answer } = alone(fleet, steps, pick) as Alone
        apply(b, task, answer.changes[index] as WouldFit, 0)
        b.cycle()
        expect(isPlaced(task), `${task.spec.id}: ${tellOf(change)}`).toBe(true)
      }
    })
    holds(property, 200, FILE)
  })

  it('do not place it when they are one unit smaller', () => {
    const property = fc.property(fleetShapeArb, historyArb, fc.nat(40), (fleet, steps, pick) => {
      const asked = alone(fleet, steps, pick)
      if (asked === null) return
      for (const [index, change] of asked.answer.changes.entries()) {
        const { b, task, answer } = alone(fleet, steps, pick) as Alone
        if (!apply(b, task, answer.changes[index] as WouldFit, 1)) continue
        b.cycle()
        if (hasBecomeCollector(task)) continue
        expect(isPlaced(task), `${task.spec.id}: one less than ${tellOf(change)}`).toBe(false)
      }
    })
    holds(property, 200, FILE)
  })

  it('are missing exactly when the task already fits', () => {
    const property = fc.property(fleetShapeArb, historyArb, fc.nat(40), (fleet, steps, pick) => {
      const asked = alone(fleet, steps, pick)
      if (
        asked === null ||
        [...asked.b.cluster.nodes.values()].some((node) => node.queue.some(({ task }) => task !== asked.task))
      )
        return
      asked.b.cycle()
      if (hasBecomeCollector(asked.task)) return
      expect(isPlaced(asked.task)).toBe(asked.answer.fitsAlone)
    })
    holds(property, 75, FILE)
  })
})

interface Alone {
  readonly b: ClusterBuilder
  readonly task: LiveTask
  readonly answer: WouldFitIf
}

/** The settled history without all waiting tasks except one. Null when no task waits. */
function alone(fleet: FleetShape, steps: readonly Step[], pick: number): Alone | null {
  const b = buildFleet(fleet)
  for (const step of steps) applyStep(b, step)
  b.cycle()
  b.cycle()
  const waiting = b.tasks.filter(({ queue }) => queue !== null)
  const task = waiting[pick % waiting.length]
  if (task === undefined) return null
  for (const other of waiting) if (other !== task) b.cancel(other)
  return { b, task, answer: wouldFitIf(b.cluster, task, b.now) }
}

function isPlaced(task: LiveTask): boolean {
  return task.placement !== null || task.placementEntry?.hasReserved === true
}

/** An aged entry becomes the collector and reserves VRAM that does not fit yet, without any change. */
function hasBecomeCollector(task: LiveTask): boolean {
  return task.placementEntry?.isCollector === true
}

/** Applies the change, reduced by this number of units; returns whether the change exists. */
function apply(b: ClusterBuilder, task: LiveTask, change: WouldFit, less: 0 | 1): boolean {
  const node = b.node(change.node.id)
  switch (change.change) {
    case 'overcommit':
      return applySetting(b, node, change.scope, { percent: change.to - less })
    case 'reserve':
      return applySetting(b, node, change.scope, { reserve: change.to + less })
    case 'vram':
      b.update(task, { vramMib: change.to + less })
      return true
    case 'noswap':
      b.update(task, { noswap: 0 })
      return less === 0
    case 'groups':
      b.update(task, { groups: change.group === null ? [] : [change.group] })
      return less === 0
    case 'uncordon':
      b.cordon(node, false)
      return less === 0
    case 'task_ends':
      b.finished(b.cluster.tasks.get(change.task.spec.id) as LiveTask)
      return less === 0
    case 'victims_idle': {
      // The engine would check that instant itself; the effect of time alone is not tested.
      b.now = change.at - less
      return true
    }
  }
}

function applySetting(
  b: ClusterBuilder,
  node: LiveNode,
  scope: 'cluster' | 'node',
  { percent, reserve }: { readonly percent?: number; readonly reserve?: number },
): boolean {
  if (scope === 'cluster') {
    if (percent !== undefined) b.configure({ default_vram_overcommit_percent: percent })
    if (reserve !== undefined) b.configure({ safety_reserve_mib: reserve })
  } else
    b.configureNode(node, {
      ...(percent === undefined ? {} : { overcommitPercent: percent }),
      ...(reserve === undefined ? {} : { reserveMib: reserve }),
    })
  return true
}

function tellOf(change: WouldFit): string {
  const { node, ...rest } = change
  return `${node.id} ${JSON.stringify({ ...rest, ...('task' in rest ? { task: rest.task.spec.id } : {}) })}`
}
