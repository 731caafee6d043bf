/** Rounds that a term of the operator takes from the marks of pods hold the fairness bound as well. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { enactRound, forgetTask, markOf, newGpuRounds } from '../../controller/policy/swap/rounds.ts'
import type { GpuRounds } from '../../controller/policy/swap/rounds.ts'
import { chooseVictims } from '../../controller/policy/swap/victims.ts'
import { VICTIM_CLASSES, ROUND_FIELDS } from '../../controller/model/victim-class.ts'
import { AgentLink } from '../../operator/placing/agent-link.ts'
import { marksOf, nextDecision, recordedMarks } from '../../operator/placing/swap-marks.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { FairnessTracker } from '../../simulator/check/fairness-tracker.ts'

const SEED = 20_261_128
const RUNS = 1_500
const UUID = 'GPU-0'
const PODS = ['c', 'a', 'd', 'b', 'e', 'f']

const decision = fc.record({
  needMib: fc.integer({ min: 1, max: 30 }),
  /** A bit for each pod. */
  notEligible: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat({ max: 63 })),
  isAfterRestart: fc.boolean(),
  ending: fc.option(fc.nat({ max: PODS.length - 1 }), { freq: 12 }),
})
const run = fc.record({
  sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: PODS.length, maxLength: PODS.length }),
  decisions: fc.array(decision, { minLength: 20, maxLength: 60, size: 'max' }),
})
type Run = typeof run extends fc.Arbitrary<infer T> ? T : never
/** Returns the rounds of the next term. */
type Restart = (link: AgentLink) => GpuRounds

/** As the store of the next term has what the agent has kept. */
const keptMarks: Restart = (link) => {
  const kept = link.marks()
  const record = recordedMarks(UUID, kept)
  const restored = newGpuRounds()
  for (const each of VICTIM_CLASSES) restored[each].round = record[ROUND_FIELDS[each]]
  for (const { taskId, class: victimClass, round, lastSwapOut } of record.marks)
    restored[victimClass].marks.set(taskId, { round, lastSwapOut })
  expect(nextDecision([kept])).toBeGreaterThan(Math.max(0, ...record.marks.map((mark) => mark.lastSwapOut)))
  return restored
}

function breaches({ sizes, decisions }: Run, restart: Restart): readonly unknown[] {
  const tracker = new FairnessTracker()
  const found: unknown[] = []
  const ended = new Set<string>()
  const link = new AgentLink(new VirtualClock(0))
  let rounds = newGpuRounds()
  for (const [number, { needMib, notEligible, isAfterRestart, ending }] of decisions.entries()) {
    const pods = PODS.filter((pod) => !ended.has(pod))
    if (ending !== null && pods.length > 2) {
      const pod = PODS[ending] ?? ''
      ended.add(pod)
      forgetTask(rounds, pod)
      link.forget(pod)
      tracker.leave(pod)
    }
    if (isAfterRestart) rounds = restart(link)
    const candidates = PODS.flatMap((id, index) => {
      if (ended.has(id) || (notEligible & (1 << index)) !== 0) return []
      const { round, lastSwapOut } = markOf(rounds.non_p0, id)
      const standing = { isSwappedThisRound: round === rounds.non_p0.round, lastSwapOut }
      const mib = sizes[index] ?? 1
      return [{ id, class: 'non_p0' as const, isAboveRequest: false, idleMs: 400_000, mib, ...standing }]
    })
    const choice = chooseVictims([{ gpu: 0, missingMib: needMib, candidates }], 'cover')
    if (!choice.covered) continue
    const victims = choice.victims.map(({ id }) => id)
    const breach = tracker.decide({ victims, available: new Set(candidates.map(({ id }) => id)) })
    if (breach !== null) found.push(breach)
    enactRound([rounds], choice, number + 1)
    for (const id of victims) link.give(id, 'out', marksOf(id, [{ uuid: UUID }], [{ rounds }]))
  }
  return found
}

it('The fairness bound holds over any number of restarts, with pods that end', () => {
  const property = fc.property(run, (each) => {
    expect(breaches(each, keptMarks)).toEqual([])
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

it('A restart that forgets marks and rounds breaks the bound', () => {
  const runs = fc.sample(run, { seed: SEED, numRuns: 50 })
  expect(runs.some((each) => breaches(each, () => newGpuRounds()).length > 0)).toBe(true)
})
