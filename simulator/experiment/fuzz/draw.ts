/** Draws a scenario from a seed: fleet, configuration, workload, operator and faults. */
import { ALWAYS_NAMES } from '../../scenario/assertions.ts'
import { seededStream } from '../../kernel/seeded-random.ts'
import { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument } from './document.ts'
import { drawEager } from './draw-eager.ts'
import { drawFaults, drawSuccessionFaults } from './draw-faults.ts'
import { drawHookFaults, drawHooks } from './draw-hooks.ts'
import { drawWarm } from './draw-warm.ts'
import { drawConfig, drawFleet } from './draw-fleet.ts'
import { drawLimits } from './draw-limits.ts'
import { drawOperator } from './draw-operator.ts'
import { drawSignals } from './draw-signals.ts'
import { drawStops } from './draw-stops.ts'
import { drawWorkload } from './draw-workload.ts'
import { drawSetBacks, drawSettling } from './draw-set-back.ts'
import { drawFeatures, SET_BACK_FEATURE, type Features } from './features.ts'

const MINUTE = 60_000
/** A store has something to lose by then. */
const SET_BACK_FROM_MS = 10_000

/**
 * Times of a scenario: a world with faults is short and crowded, one without has time for every waiting
 * period.
 */
interface Times {
  readonly arrivalsMs: number
  readonly untilMs: number
  readonly overMs: number
}

const CALM: Times = { arrivalsMs: 40 * MINUTE, untilMs: 60 * MINUTE, overMs: 100 * MINUTE }
const FAULTY: Times = { arrivalsMs: 2.5 * MINUTE, untilMs: 3 * MINUTE, overMs: 4 * MINUTE }

/**
 * These rules compare a decision with the state of the servers at that instant, which is the same only if no
 * message is in flight.
 */
const TO_THE_LETTER: readonly string[] = ['idle_rule', 'p0_rule', 'fairness_bound', 'victim_choice']

/** The features of the seed, drawn before everything else. */
export function featuresOf(seed: number): Features {
  const dice = (part: string): FuzzRandom => new FuzzRandom(seededStream(seed, `fuzz/${part}`))
  const own = {
    signals: dice('signals'),
    stops: dice('stops'),
    limits: dice('limits'),
    setBack: dice('set-back'),
    hooks: dice('hooks'),
    warm: dice('warm'),
    pair: dice('lease'),
  }
  return drawFeatures(dice('features'), own)
}

export function drawDocument(seed: number): FuzzDocument {
  const features = featuresOf(seed)
  const times = features.faults.length === 0 ? CALM : FAULTY
  const dice = (part: string): FuzzRandom => new FuzzRandom(seededStream(seed, `fuzz/${part}`))
  const nodes = drawFleet(dice('fleet'), features)
  const limited = drawLimits(
    dice('limits/nodes'),
    nodes.map(({ entry }) => entry),
    features,
  )
  const drawnConfig = drawConfig(dice('config'), features)
  const idlePeriodMs = Number(drawnConfig['idle_swap_out_seconds']) * 1000
  const drawnTasks = drawWorkload(dice('workload'), nodes, features, {
    arrivalsMs: times.arrivalsMs,
    idlePeriodMs,
  })
  const { config, workload } = drawStops(
    dice('stops/tasks'),
    { config: drawnConfig, workload: drawnTasks },
    features,
    times.arrivalsMs,
  )
  const drawn = { fleet: limited, config, workload }
  const taskIds = workload.map(({ task }) => String((task as Entry)['id']))
  const signalled = drawSignals(dice('signals/nodes'), drawn, features, times.arrivalsMs)
  const hooked = drawHooks(dice('hooks/tasks'), drawEager(dice('eager'), signalled), features)
  const whole = drawWarm(dice('warm/tasks'), hooked, features)
  const everyTaskId = whole.workload.map(({ task }) => String((task as Entry)['id']))
  const setBackShape = {
    fromMs: SET_BACK_FROM_MS,
    untilMs: times.untilMs,
    overMs: times.overMs,
    taskIds: everyTaskId,
  }
  const setBackDice = features.on.has(SET_BACK_FEATURE) ? dice('set-backs') : null
  const setBacks = setBackDice === null ? [] : drawSetBacks(setBackDice, setBackShape)
  const settling = setBackDice === null ? [] : drawSettling(setBackDice, setBackShape)
  const operator = drawOperator(dice('operator'), nodes, features, {
    untilMs: times.untilMs,
    overMs: times.overMs,
    taskIds,
  })
  return {
    scenario: `fuzz-${seed}`,
    description: `Drawn from seed ${seed}.`,
    version: 1,
    seed,
    clock: { until: `${times.overMs}ms` },
    ...whole,
    operator: setBackDice === null ? operator : [...operator.map(withoutExpectation), ...settling],
    faults: [
      ...drawFaults(dice('faults'), nodes, {
        kinds: features.faults,
        fromMs: 1_000,
        untilMs: times.untilMs,
        overMs: times.overMs,
      }),
      ...setBacks,
      ...drawHookFaults(dice('hooks/faults'), nodes, features, {
        fromMs: 1_000,
        untilMs: times.untilMs,
        overMs: times.overMs,
      }),
      ...drawSuccessionFaults(dice('lease/faults'), nodes, features, {
        fromMs: 1_000,
        untilMs: times.untilMs,
        overMs: times.overMs,
      }),
    ],
    assert: {
      always:
        features.faults.length === 0
          ? ALWAYS_NAMES
          : ALWAYS_NAMES.filter((name) => !TO_THE_LETTER.includes(name)),
      eventually: [{ that: 'every_feasible_task_runs' }],
    },
  }
}

/** The answer depends on what the store has lost. */
function withoutExpectation({ answer: _answer, ...entry }: Entry): Entry {
  return { ...entry, expect: null }
}
