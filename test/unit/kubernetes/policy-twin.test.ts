/** The forecast for waiting pods of an operator over an API server in memory: its process is the real one. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { PodReport } from '../../../protocol/agent-messages.ts'
import type { Operator } from '../../../services/operator/operator.ts'
import { PolicyTwin } from '../../../services/operator/policy-twin.ts'
import { type AskedPolicy, simulatedLines } from '../../../operator/contract/policy-twin-lines.ts'
import { aClusterPolicy, aNodePolicy } from '../../support/kubernetes/objects.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
let world: OperatorWorld
let operator: Operator
beforeEach(async () => {
  world = new OperatorWorld()
  await world.addNode('a', 24 * GIB)
  operator = world.start()
})
afterEach(() => world.stop())

const ofCluster = (percent: number) => ({ kind: 'ClusterGPUPolicy', policy: aClusterPolicy(percent) })

/** An idle pod has the GPU, two wait; the agent has host memory for all of them. */
async function untilPodsWait(): Promise<void> {
  const report = { node: 'a', host_swap_mib: 64 * GIB, wait_ms: 0 }
  const reported = (pods: readonly PodReport[]) => operator.agentReported({ ...report, pods: [...pods] })
  await vi.waitFor(async () => expect(await reported([])).not.toBeNull(), WAIT)
  const { metadata } = await world.addPod('resident', '20Gi')
  const counts = () => operator.placement?.controller.views.counts()
  await vi.waitFor(() => expect(counts()).toMatchObject({ running: 1, pending: 0 }), WAIT)
  const pod = { pod: metadata.uid ?? '', residency: 'in', order: 0, outcome: null, why_not: null } as const
  await reported([{ ...pod, wants_gpu: false, idle_ms: 3_600_000 }])
  await world.addPod('second', '8Gi')
  await world.addPod('third', '8Gi')
  await vi.waitFor(() => expect(counts()).toMatchObject({ running: 1, pending: 2 }), WAIT)
}

/** On a busy machine the simulation may not get far enough in its time; it is then asked for again. */
function simulated(asked: AskedPolicy): Promise<readonly string[]> {
  return vi.waitFor(async () => {
    const lines = (await operator.forecast(asked)) ?? []
    expect(lines[0]).not.toContain('not simulated')
    return lines
  }, WAIT)
}

it('A higher percentage lets waiting pods start, and the forecast says how many and when', async () => {
  await untilPodsWait()
  const [pods, basis] = await simulated(ofCluster(100))
  expect(pods).toMatch(/^forecast: 2 of 2 waiting pods would start within .+ \(without the change 0\); /)
  // The pod that has the GPU leaves it after the idle period of five minutes.
  expect(pods).toMatch(/median wait from now more than .+ → \d min; swap-outs 0\.0 → \d+\.\d an hour\.$/)
  expect(basis).toMatch(/^forecast: simulated from the current state in \d+ pairs of runs over /)
  expect(basis).toContain('every pod stays and works or idles as it does now')
})

it('A policy of another node, or one that changes no limit, changes no wait', async () => {
  await untilPodsWait()
  const none = ['forecast: no limit of a node changes, so that no wait does.']
  expect(await operator.forecast(ofCluster(0))).toEqual(none)
  const elsewhere = { kind: 'VendorNodePolicy', policy: aNodePolicy('b', 100) }
  expect(await operator.forecast(elsewhere)).toEqual(none)
  const here = { kind: 'VendorNodePolicy', policy: aNodePolicy('own', 100, 'a') }
  expect((await simulated(here))[0]).toMatch(/^forecast: 2 of 2 waiting pods/)
})

it('One forecast runs at a time, and one that takes too long is ended', async () => {
  await untilPodsWait()
  const objects = { node: () => null, nodePolicies: () => [], clusterPolicy: () => null }
  const twin = new PolicyTwin({
    ...{ objects, helmPercent: 0, probeSeconds: 1, withinMs: 1 },
    onNote: (line) => world.notes.push(line),
  })
  const { views } = operator.placement!.controller
  const first = twin.linesFor(views, ofCluster(100))
  expect(await twin.linesFor(views, ofCluster(100))).toEqual([
    'forecast: waiting times were not simulated, because another forecast is in progress; try again.',
  ])
  expect(await first).toEqual([
    'forecast: waiting times were not simulated, because it took longer than 0.001 s.',
  ])
})

it('An operator that does not lead has no forecast', () => {
  expect(new OperatorWorld().start().forecast(ofCluster(100))).toBeNull()
})

it('Times are told in minutes, or in hours from two hours on', () => {
  const known = { isActivityKnown: true }
  const before = { started: 1, waitMs: 720_000, swapOutsPerHour: 3.04 }
  const after = { started: 3, waitMs: 60_000, swapOutsPerHour: 9 }
  const [first] = simulatedLines({ horizonMs: 14_400_000, runs: 9, waiting: 5, ...known, before, after })
  expect(first).toBe(
    'forecast: 3 of 5 waiting pods would start within 4.0 h (without the change 1); ' +
      'median wait from now 12 min → 1 min; swap-outs 3.0 → 9.0 an hour.',
  )
  const [none] = simulatedLines({ horizonMs: 600_000, runs: 9, waiting: 0, ...known, before, after })
  expect(none).toBe('forecast: no pod waits now; swap-outs 3.0 → 9.0 an hour.')
})
