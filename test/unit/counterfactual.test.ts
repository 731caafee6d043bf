/** Another victim in one decision: the other victims that the rules choose with it, and the outcome. */
import { describe, expect, it } from 'vitest'
import type { Candidate } from '../../controller/policy/swap/order.ts'
import { chooseWithVictim } from '../../controller/policy/swap/victim-override.ts'
import { chooseVictims } from '../../controller/policy/swap/victims.ts'
import {
  counterfactual,
  CounterfactualFault,
  swapChoices,
} from '../../simulator/experiment/counterfactual.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }
/** Two idle tasks; a third needs the VRAM of either. `a` returns soon, `b` much later. */
const { scenario } = loadScenario({
  baseDir: '.',
  text: `
scenario: choice
version: 1
fleet: [{ name: one, gpu: { vram_mib: 36000 } }]
config: { default_vram_overcommit_percent: 200, idle_swap_out_seconds: 60 }
workload:
  - { task: { id: a, vram_mib: 16000, work: { kind: phases,
      phases: [[10s, 5m], [10s, 5m], [10s, 20m], [10s, 0s]] } } }
  - { task: { id: b, at: 1s, vram_mib: 16000, work: { kind: phases, phases: [[10s, 40m], [10s, 0s]] } } }
  - { task: { id: c, at: 2m, vram_mib: 16000, work: { kind: phases, phases: [[3m, 10m], [10s, 0s]] } } }
`,
})

describe('a counterfactual', () => {
  it('reports the outcome with the other victim, with equal results each time', async () => {
    const [first] = await swapChoices(scenario, IDENTITY)
    expect(first).toMatchObject({
      decision: 1,
      atMs: 120_000,
      taskId: 'c',
      node: 'one',
      victimIds: ['a'],
      candidateIds: ['a', 'b'],
    })
    const found = await counterfactual(scenario, IDENTITY, { decision: 1, victim: 'b' })
    expect(found.otherVictimIds).toEqual(['b'])
    expect(found.tasks.map(({ id, role }) => [id, role])).toEqual([
      ['c', 'needs'],
      ['a', 'left'],
      ['b', 'leaves_instead'],
    ])
    const [, a, b] = found.tasks
    expect(a?.before?.swap_outs).toBeGreaterThan(a?.after?.swap_outs ?? Infinity)
    expect(a?.after?.starvation_percent).toBeLessThan(a?.before?.starvation_percent ?? 0)
    expect(b?.after?.swap_outs).toBe(1)
    expect(found.cluster.after.swap_outs).toBe(found.cluster.before.swap_outs - 1)
    expect(found.tasksChanged).toBeGreaterThan(0)
    expect(await counterfactual(scenario, IDENTITY, { decision: 1, victim: 'b' })).toEqual(found)
  })

  it('with the actual victim has the actual outcome, and without an override nothing changes', async () => {
    const found = await counterfactual(scenario, IDENTITY, { decision: 1, victim: 'a' })
    expect(found.cluster.after).toEqual(found.cluster.before)
    expect(found.tasksChanged).toBe(0)
    const plain = await runScenario(scenario, IDENTITY)
    const watched = await runScenario(scenario, IDENTITY, {
      keepsTasks: true,
      victimOverride: { override: null, onChoice: () => {} },
    })
    expect(watched.result.digest).toBe(plain.result.digest)
  })

  it('refuses an unknown decision, and a task that was not a candidate, by name', async () => {
    const ask = (decision: number, victim: string) => counterfactual(scenario, IDENTITY, { decision, victim })
    await expect(ask(99, 'b')).rejects.toThrow(/the run has no swap decision 99; it has \d+, from 1 to \d+/)
    await expect(ask(1, 'c')).rejects.toThrow(
      new CounterfactualFault('task c could not leave in decision 1; those that could: a, b'),
    )
  })
})

describe('a victim choice with an override', () => {
  const one = (id: string, mib: number, changes: Partial<Candidate> = {}): Candidate => {
    return {
      id,
      class: 'non_p0',
      isAboveRequest: false,
      idleMs: 1000,
      mib,
      isSwappedThisRound: false,
      lastSwapOut: null,
      ...changes,
    }
  }

  it('takes the given victim, and as few others as the rules allow', () => {
    const shortages = [{ gpu: 0, missingMib: 30, candidates: [one('a', 40), one('b', 20), one('c', 10)] }]
    expect(chooseVictims(shortages)).toMatchObject({ victims: [{ id: 'b' }, { id: 'c' }] })
    expect(chooseWithVictim(shortages, 'a')?.victims).toMatchObject([{ id: 'a', gpu: 0, class: 'non_p0' }])
    expect(chooseWithVictim(shortages, 'c')?.victims.map(({ id }) => id)).toEqual(['c', 'b'])
    expect(chooseWithVictim(shortages, 'x')).toBeNull()
  })

  it('closes the round once if the victim has already been swapped out in it', () => {
    const swapped = one('a', 10, { isSwappedThisRound: true, lastSwapOut: 3 })
    const alone = [{ gpu: 1, missingMib: 10, candidates: [swapped, one('b', 10)] }]
    expect(chooseWithVictim(alone, 'a')?.closedRounds).toEqual([{ gpu: 1, class: 'non_p0' }])
    const also = one('b', 20, { isSwappedThisRound: true, lastSwapOut: 4 })
    const both = chooseWithVictim([{ gpu: 1, missingMib: 30, candidates: [swapped, also] }], 'a')
    expect(both).toMatchObject({
      closedRounds: [{ gpu: 1, class: 'non_p0' }],
      victims: [{ id: 'a' }, { id: 'b' }],
    })
  })

  it('counts the victim on all its GPUs, and is null if the others cannot cover the rest', () => {
    const wide = one('w', 20)
    const shortages = [
      { gpu: 1, missingMib: 15, candidates: [wide, one('y', 15)] },
      { gpu: 0, missingMib: 25, candidates: [wide, one('x', 30)] },
    ]
    expect(chooseWithVictim(shortages, 'w')?.victims.map(({ id, gpu }) => [id, gpu])).toEqual([
      ['w', 0],
      ['x', 0],
    ])
    expect(chooseWithVictim([{ gpu: 0, missingMib: 50, candidates: [wide] }], 'w')).toBeNull()
  })
})
