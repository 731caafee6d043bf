import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byCodeUnits } from '../../controller/structures/order.ts'
import { levelOf, swapOutAge } from '../../controller/policy/swap/order.ts'
import { victimClassOf } from '../../controller/model/victim-class.ts'
import { enactRound, forgetTask, markOf, newGpuRounds } from '../../controller/policy/swap/rounds.ts'
import { EXACT_SUBSET_TASKS, fewestBytesCovering, totalOf } from '../../controller/policy/swap/subset.ts'
import { chooseVictims } from '../../controller/policy/swap/victims.ts'
import type { GpuRounds } from '../../controller/policy/swap/rounds.ts'
import type {
  Candidate,
  Shortage,
  Victim,
  VictimChoice,
  VictimClass,
} from '../../controller/policy/swap/victims.ts'

const SEED = 20_250_611
const FILE = 'test/property/swap-fairness.test.ts'
const CLASSES: readonly VictimClass[] = ['non_p0', 'non_p0_warm', 'p0', 'p0_warm']

/** design/semantics.md 5: maximum difference between the swap-outs of two comparable tasks. */
const BOUND_IN_ANY_WINDOW = 2
const BOUND_FROM_ROUND_START = 1

/** Sizes and ages repeat on purpose: orders go wrong at ties. */
function candidateArb(maxMib: number): fc.Arbitrary<Omit<Candidate, 'id'>> {
  return fc.record({
    class: fc.constantFrom(...CLASSES),
    isAboveRequest: fc.boolean(),
    idleMs: fc.integer({ min: 300_000, max: 300_003 }),
    mib: fc.integer({ min: 1, max: maxMib }),
    isSwappedThisRound: fc.boolean(),
    lastSwapOut: fc.option(fc.integer({ min: 0, max: 3 })),
  })
}

function candidatesArb(maxCount: number, maxMib = 9): fc.Arbitrary<Candidate[]> {
  return fc
    .array(candidateArb(maxMib), { maxLength: maxCount, size: 'max' })
    .map((tasks) => tasks.map((task, index) => ({ ...task, id: nameOf(index) })))
}

/**
 * One to three GPUs of a node with a shortage; a task may use several of them, with the same demand and a
 * separate state on each.
 */
const shortagesArb: fc.Arbitrary<Shortage[]> = fc
  .record({
    tasks: fc.array(
      fc.record({
        on: fc.array(candidateArb(9), { minLength: 3, maxLength: 3 }),
        gpus: fc.integer({ min: 1, max: 7 }),
      }),
      {
        maxLength: 10,
        size: 'max',
      },
    ),
    missing: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 3 }),
  })
  .map(({ tasks, missing }) =>
    missing.map((missingMib, gpu) => ({
      gpu,
      missingMib,
      candidates: tasks.flatMap(({ on, gpus }, index) => {
        const [first, here] = [on[0], on[gpu]]
        if ((gpus & (1 << gpu)) === 0 || first === undefined || here === undefined) return []
        const { class: victimClass, isAboveRequest, mib, idleMs } = first
        return [{ ...here, ...{ class: victimClass, isAboveRequest, mib, idleMs }, id: nameOf(index) }]
      }),
    })),
  )

describe('the choice of victims', () => {
  it('is independent of the order of GPUs and candidates', () => {
    const property = fc.property(
      shortagesArb,
      fc.infiniteStream(fc.nat()),
      fc.boolean(),
      (shortages, numbers, collects) => {
        const mode = collects ? 'collect' : 'cover'
        const shuffled = shuffle(shortages, numbers).map((shortage) => ({
          ...shortage,
          candidates: shuffle(shortage.candidates, numbers),
        }))
        expect(chooseVictims(shuffled, mode)).toEqual(chooseVictims(shortages, mode))
      },
    )
    holds(property, 3000)
  })

  it('equals a direct reading of the rules that tries every subset', () => {
    const property = fc.property(shortagesArb, fc.boolean(), (shortages, collects) => {
      const mode = collects ? 'collect' : 'cover'
      expect(chooseVictims(shortages, mode)).toEqual(plainReading(shortages, mode))
    })
    holds(property, 3000)
  })

  it('covers every GPU, or is empty and names the GPU that is not covered', () => {
    const property = fc.property(shortagesArb, (shortages) => {
      const choice = chooseVictims(shortages)
      const uncovered = shortages.find((shortage) => totalOf(shortage.candidates) < shortage.missingMib)
      expect(choice.covered ? undefined : choice.gpu).toBe(uncovered?.gpu)
      if (!choice.covered) return
      const ids = new Set(choice.victims.map((victim) => victim.id))
      expect(ids.size).toBe(choice.victims.length)
      for (const { candidates, missingMib } of shortages) {
        expect(totalOf(candidates.filter((task) => ids.has(task.id)))).toBeGreaterThanOrEqual(missingMib)
      }
    })
    holds(property, 3000)
  })

  it('takes a P0 task only after all others on that GPU, and only candidates', () => {
    const property = fc.property(shortagesArb, fc.boolean(), (shortages, isForP0) => {
      const offered = shortages.map((shortage) => ({
        ...shortage,
        candidates: shortage.candidates.filter((task) => isForP0 || !isP0(task)),
      }))
      const choice = chooseVictims(offered, 'collect')
      const victims = choice.covered ? choice.victims : []
      const ids = new Set(victims.map((victim) => victim.id))
      for (const { gpu } of victims.filter((victim) => victim.class === 'p0')) {
        expect(isForP0).toBe(true)
        const others = offered
          .filter((shortage) => shortage.gpu === gpu)
          .flatMap((shortage) => shortage.candidates)
        expect(others.filter((task) => !isP0(task) && !ids.has(task.id))).toEqual([])
      }
    })
    holds(property, 3000)
  })

  it('takes a kept-warm task only after all others of its class on that GPU', () => {
    const property = fc.property(shortagesArb, (shortages) => {
      const choice = chooseVictims(shortages, 'collect')
      const victims = choice.covered ? choice.victims : []
      const ids = new Set(victims.map((victim) => victim.id))
      for (const { gpu, id } of victims) {
        const here = shortages.find((shortage) => shortage.gpu === gpu)?.candidates ?? []
        const victim = here.find((task) => task.id === id)
        if (victim === undefined || !isKeptWarm(victim)) continue
        const others = here.filter((task) => isP0(task) === isP0(victim) && !isKeptWarm(task))
        expect(others.filter((task) => !ids.has(task.id))).toEqual([])
      }
    })
    holds(property, 3000)
  })

  it('takes a task above its request before the others of its level on that GPU', () => {
    const property = fc.property(shortagesArb, (shortages) => {
      const choice = chooseVictims(shortages, 'collect')
      const ids = new Set(choice.covered ? choice.victims.map((victim) => victim.id) : [])
      const onOne = shortages.length === 1 ? (shortages[0]?.candidates ?? []) : []
      for (const victim of onOne.filter((task) => ids.has(task.id) && task.isAboveRequest !== true)) {
        const equals = onOne.filter((task) => levelOf(task) === levelOf(victim))
        expect(equals.filter((task) => task.isAboveRequest === true && !ids.has(task.id))).toEqual([])
      }
    })
    holds(property, 3000)
  })

  it('for a collector takes all candidates of a GPU if they do not cover the shortage', () => {
    const property = fc.property(candidatesArb(20), (candidates) => {
      const choice = chooseVictims([{ gpu: 0, missingMib: totalOf(candidates) + 1, candidates }], 'collect')
      expect(choice.covered && choice.victims.length).toBe(candidates.length)
    })
    holds(property, 500)
  })
})

describe('the smallest covering subset', () => {
  it(`has the least VRAM of up to ${EXACT_SUBSET_TASKS} tasks, ties by count, idle time and ids`, () => {
    const property = fc.property(candidatesArb(EXACT_SUBSET_TASKS, 6), fc.nat(), (tasks, number) => {
      fc.pre(tasks.length > 0)
      const missingMib = 1 + (number % totalOf(tasks))
      expect(sortedIds(fewestBytesCovering(tasks, missingMib))).toEqual(bestSubset(tasks, missingMib))
    })
    holds(property, 400)
  })

  it('has at most twice the least VRAM for more tasks, and no superfluous task', () => {
    const sizes = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 100, max: 400 }))
    const tasksArb = fc.array(sizes, { minLength: EXACT_SUBSET_TASKS + 1, maxLength: 64, size: 'max' })
    const property = fc.property(tasksArb, fc.nat(), fc.boolean(), (mibs, number, isSmall) => {
      const tasks = mibs.map((mib, index) => plainCandidate(nameOf(index), mib))
      const missingMib = 1 + (number % (isSmall ? 500 : totalOf(tasks)))
      const victims = fewestBytesCovering(tasks, missingMib)
      const movedMib = totalOf(victims)
      expect(movedMib).toBeGreaterThanOrEqual(missingMib)
      expect(movedMib).toBeLessThanOrEqual(2 * leastCoverMib(mibs, missingMib))
      for (const victim of victims) expect(movedMib - victim.mib).toBeLessThan(missingMib)
    })
    holds(property, 600)
  })
})

describe('the fairness bound', () => {
  it('holds on one GPU', () => {
    holds(boundProperty(fleetArb({ gpus: 1 })), 1500)
  })

  it('holds on one GPU if all tasks are P0', () => {
    holds(boundProperty(fleetArb({ gpus: 1, allP0: true })), 700)
  })

  it('holds on each of several GPUs without tasks that the decision already chose elsewhere', () => {
    holds(boundProperty(fleetArb({ gpus: 3 })), 1500)
  })

  it('holds on several GPUs if all tasks are P0', () => {
    holds(boundProperty(fleetArb({ gpus: 3, allP0: true })), 700)
  })

  it('fails without that exclusion: a victim of GPU 0 is never counted on GPU 1', () => {
    const wide = modelTask({ gpus: 0b11, mib: 1 })
    const narrow = modelTask({ gpus: 0b10, mib: 1 })
    const books = play(
      { gpuCount: 2, tasks: [wide, narrow], decisions: repeat(3, { needMib: [1, 2] }) },
      chooseVictims,
    )
    expect(firstBreach(books)).toBe(null)
    expect(firstBreach(books, 'literal')).toEqual({
      book: 'GPU 1 non_p0',
      from: 0,
      to: 1,
      spread: 2,
      bound: BOUND_FROM_ROUND_START,
    })
    const withoutRoundStarts = firstBreach(books, 'literal', [BOUND_IN_ANY_WINDOW])
    expect(withoutRoundStarts).toEqual({
      book: 'GPU 1 non_p0',
      from: 0,
      to: 2,
      spread: 3,
      bound: BOUND_IN_ANY_WINDOW,
    })
  })

  it('is reached: a window that begins inside a round may have a difference of 2', () => {
    const fleets = fc.sample(fleetArb({ gpus: 1 }), { seed: SEED, numRuns: 300 })
    const spreads = fleets.map(
      (fleet) => firstBreach(play(fleet, chooseVictims), 'available', [1])?.spread ?? 0,
    )
    expect(Math.max(...spreads)).toBe(BOUND_IN_ANY_WINDOW)
  })
})

describe('the checker of the fairness bound', () => {
  const three = [10, 12, 14].map((mib) => modelTask({ mib }))

  it('detects plain best-fit, which takes the same task every time', () => {
    const books = play({ gpuCount: 1, tasks: three, decisions: repeat(12, { needMib: [12] }) }, plainBestFit)
    expect(firstBreach(books, 'available', [BOUND_IN_ANY_WINDOW])).toMatchObject({ spread: 3 })
    expect(books.flatMap((book) => book.steps.flatMap((step) => [...step.fresh, ...step.swapped]))).toEqual(
      Array.from({ length: 12 }, () => 1),
    )
  })

  it('detects ranking by total count, which takes a new task every time', () => {
    const tasks = [modelTask({ mib: 12 }), modelTask({ mib: 12 }), modelTask({ mib: 12, joins: 40 })]
    const books = play({ gpuCount: 1, tasks, decisions: repeat(52, { needMib: [12] }) }, leastSwappedFirst())
    expect(firstBreach(books, 'available', [BOUND_IN_ANY_WINDOW])).toMatchObject({ spread: 3 })
    expect(
      books.flatMap((book) => book.steps.slice(40).flatMap((step) => [...step.fresh, ...step.swapped])),
    ).toEqual(Array.from({ length: 12 }, () => 2))
  })

  it('detects both on random fleets, on one GPU and on several', () => {
    for (const gpus of [1, 3]) {
      for (const makeChooser of [() => plainBestFit, leastSwappedFirst]) {
        const property = fc.property(
          fleetArb({ gpus }),
          (fleet) => firstBreach(play(fleet, makeChooser())) === null,
        )
        expect(fc.check(property, { seed: SEED, numRuns: 200 }).failed).toBe(true)
      }
    }
  })
})

type Chooser = (shortages: readonly Shortage[], mode: 'cover' | 'collect') => VictimChoice

interface ModelTask {
  readonly isP0: boolean
  readonly isKeptWarm: boolean
  /** One bit for each of eight decisions, in turn: it uses more than it requested then. */
  readonly aboveAt: number
  readonly mib: number
  /** One bit for each of its GPUs. */
  readonly gpus: number
  /** It exists from decision `joins` to before decision `leaves`. */
  readonly joins: number
  readonly leaves: number
}

interface Decision {
  /** A task whose bit is set is not eligible this time: it is active, or the preemptor. */
  readonly notEligible: number
  readonly isForP0: boolean
  readonly mode: 'cover' | 'collect'
  /** Shortage of GPU i in MiB, or 0. */
  readonly needMib: readonly number[]
}

interface Fleet {
  readonly gpuCount: number
  readonly tasks: readonly ModelTask[]
  readonly decisions: readonly Decision[]
}

/** The effect of one decision on one class and GPU; tasks by index. */
interface Step {
  /** Victims not yet swapped out in the round; they belong to the round before a closing. */
  readonly fresh: readonly number[]
  /** Victims already swapped out in the round; they belong to the round after the closing. */
  readonly swapped: readonly number[]
  readonly closes: boolean
  readonly eligible: ReadonlySet<number>
  /** Eligible, and not chosen for an earlier GPU in the same decision. */
  readonly available: ReadonlySet<number>
}

interface Book {
  readonly name: string
  readonly taskCount: number
  readonly steps: readonly Step[]
}

function fleetArb({ gpus, allP0 = false }: { gpus: number; allP0?: boolean }): fc.Arbitrary<Fleet> {
  const allGpus = (1 << gpus) - 1
  const rarely = <T>(usual: T, arb: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: arb })
  const task = fc.record({
    isP0: allP0 ? fc.constant(true) : rarely(false, fc.constant(true)),
    isKeptWarm: rarely(false, fc.constant(true)),
    aboveAt: rarely(0, fc.nat({ max: 255 })),
    mib: fc.integer({ min: 1, max: 12 }),
    gpus: fc.integer({ min: 1, max: allGpus }),
    joins: rarely(0, fc.nat({ max: 20 })),
    leaves: rarely(Infinity, fc.nat({ max: 60 })),
  })
  const decision = fc.record({
    notEligible: rarely(0, fc.nat({ max: 255 })),
    isForP0: allP0 ? fc.constant(true) : fc.boolean(),
    mode: rarely('cover', fc.constant('collect')),
    needMib: fc.array(fc.oneof(fc.nat({ max: 12 }), fc.nat({ max: 40 })), {
      minLength: gpus,
      maxLength: gpus,
    }),
  }) as fc.Arbitrary<Decision>
  return fc.record({
    gpuCount: fc.constant(gpus),
    tasks: fc.array(task, { minLength: 2, maxLength: 8, size: 'max' }),
    decisions: fc.array(decision, { minLength: 10, maxLength: 60, size: 'max' }),
  })
}

function boundProperty(fleets: fc.Arbitrary<Fleet>): fc.IProperty<[Fleet]> {
  return fc.property(fleets, (fleet) => {
    expect(firstBreach(play(fleet, chooseVictims))).toBe(null)
  })
}

/** Plays all decisions; every chosen task is resident again before the next decision. */
function play(fleet: Fleet, choose: Chooser): Book[] {
  const rounds = Array.from({ length: fleet.gpuCount }, newGpuRounds)
  const books = rounds.flatMap((_, gpu) =>
    CLASSES.map((name) => ({
      gpu,
      class: name,
      name: `GPU ${gpu} ${name}`,
      taskCount: fleet.tasks.length,
      steps: [] as Step[],
    })),
  )
  for (const [number, decision] of fleet.decisions.entries()) {
    for (const [index, task] of fleet.tasks.entries()) {
      if (task.leaves === number) for (const state of rounds) forgetTask(state, nameOf(index))
    }
    const shortages = shortagesOf(fleet, decision, number, rounds)
    const choice = choose(shortages, decision.mode)
    if (!choice.covered) continue
    for (const book of books) book.steps.push(stepOf(book.gpu, book.class, shortages, choice))
    enactRound(rounds, choice, number)
  }
  return books
}

function shortagesOf(
  fleet: Fleet,
  decision: Decision,
  number: number,
  rounds: readonly GpuRounds[],
): Shortage[] {
  return rounds.flatMap((gpuRounds, gpu) => {
    const missingMib = decision.needMib[gpu] ?? 0
    const candidates = fleet.tasks.flatMap((task, index) => {
      const isThere = task.joins <= number && number < task.leaves
      const isEligible = (decision.notEligible & (1 << index)) === 0 && (!task.isP0 || decision.isForP0)
      if (!isThere || !isEligible || (task.gpus & (1 << gpu)) === 0) return []
      const { mib } = task
      const victimClass = victimClassOf({ priority: task.isP0 ? 0 : 2, keepWarm: task.isKeptWarm })
      const state = gpuRounds[victimClass]
      const mark = markOf(state, nameOf(index))
      const standing = { isSwappedThisRound: mark.round === state.round, lastSwapOut: mark.lastSwapOut }
      const isAboveRequest = (task.aboveAt & (1 << (number % 8))) !== 0
      return [{ id: nameOf(index), class: victimClass, isAboveRequest, idleMs: 400_000, mib, ...standing }]
    })
    return missingMib > 0 ? [{ gpu, missingMib, candidates }] : []
  })
}

function stepOf(
  gpu: number,
  name: VictimClass,
  shortages: readonly Shortage[],
  choice: VictimChoice & { covered: true },
): Step {
  const shortage = shortages.find((each) => each.gpu === gpu)
  const candidates = shortage?.candidates.filter((task) => task.class === name) ?? []
  const chosenBefore = new Set(choice.victims.filter((victim) => victim.gpu < gpu).map((victim) => victim.id))
  const chosenHere = new Set(choice.victims.filter((victim) => victim.gpu === gpu).map((victim) => victim.id))
  const victims = candidates.filter((task) => chosenHere.has(task.id))
  return {
    fresh: victims.filter((task) => !task.isSwappedThisRound).map(indexOf),
    swapped: victims.filter((task) => task.isSwappedThisRound).map(indexOf),
    closes: choice.closedRounds.some((closed) => closed.gpu === gpu && closed.class === name),
    eligible: new Set(candidates.map(indexOf)),
    available: new Set(candidates.filter((task) => !chosenBefore.has(task.id)).map(indexOf)),
  }
}

interface Breach {
  readonly book: string
  /** The window, as a range of enacted decisions, inclusive. */
  readonly from: number
  readonly to: number
  readonly spread: number
  readonly bound: number
}

/**
 * Returns the first window, of any GPU and class, in which two tasks that were comparable at every closing in
 * it differ by more than the bound. All windows of complete decisions are tried for the bound of any window.
 * For the bound from the start of a round, the windows begin with the first decision or a closing one: of its
 * victims only the already swapped ones count, and it is not a closing *in* the window. `literal` takes
 * "eligible" literally; `available` leaves out tasks that were chosen for an earlier GPU of the decision.
 */
function firstBreach(
  books: readonly Book[],
  reading: 'available' | 'literal' = 'available',
  bounds: readonly number[] = [BOUND_FROM_ROUND_START, BOUND_IN_ANY_WINDOW],
): Breach | null {
  for (const book of books) {
    for (const bound of bounds) {
      for (const [from, step] of book.steps.entries()) {
        const needsRoundStart = bounds.length > 1 && bound === BOUND_FROM_ROUND_START
        if (needsRoundStart && from > 0 && !step.closes) continue
        const breach = breachFrom(book, from, needsRoundStart && step.closes, reading, bound)
        if (breach !== null) return breach
      }
    }
  }
  return null
}

function breachFrom(
  book: Book,
  from: number,
  beginsWithNewRound: boolean,
  reading: 'available' | 'literal',
  bound: number,
): Breach | null {
  const swapOuts = new Array<number>(book.taskCount).fill(0)
  let comparable = swapOuts.map((_, index) => index)
  for (let to = from; to < book.steps.length; to++) {
    const step = book.steps[to]
    if (step === undefined) break
    const isOldRoundLeftOut = to === from && beginsWithNewRound
    for (const index of isOldRoundLeftOut ? step.swapped : [...step.fresh, ...step.swapped])
      swapOuts[index] = (swapOuts[index] ?? 0) + 1
    const present = reading === 'literal' ? step.eligible : step.available
    if (step.closes && !isOldRoundLeftOut) comparable = comparable.filter((index) => present.has(index))
    const counts = comparable.map((index) => swapOuts[index] ?? 0)
    const spread = Math.max(0, ...counts) - Math.min(Infinity, ...counts)
    if (spread > bound) return { book: book.name, from, to, spread, bound }
  }
  return null
}

/** The subset with the least VRAM, regardless of earlier swaps. */
function plainBestFit(shortages: readonly Shortage[]): VictimChoice {
  return asChoice(shortages, (candidates, missingMib) => fewestBytesCovering(candidates, missingMib))
}

/** The tasks with the fewest swap-outs in total, until they cover the shortage. */
function leastSwappedFirst(): Chooser {
  const swapOuts = new Map<string, number>()
  const countOf = (task: Candidate) => swapOuts.get(task.id) ?? 0
  return (shortages) =>
    asChoice(shortages, (candidates, missingMib) => {
      const taken: Candidate[] = []
      for (const task of candidates.toSorted((a, b) => countOf(a) - countOf(b) || byCodeUnits(a.id, b.id))) {
        if (totalOf(taken) < missingMib) taken.push(task)
      }
      for (const task of taken) swapOuts.set(task.id, countOf(task) + 1)
      return taken
    })
}

/**
 * A victim that was already swapped closes the round, as in production, so that rounds mean the same for
 * both.
 */
function asChoice(
  shortages: readonly Shortage[],
  take: (candidates: Candidate[], missingMib: number) => readonly Candidate[],
): VictimChoice {
  for (const { gpu, missingMib, candidates } of shortages) {
    const haveMib = totalOf(candidates)
    if (haveMib < missingMib) return { covered: false, gpu, haveMib, needMib: missingMib }
  }
  const victims: Victim[] = []
  const closed = new Map<string, { gpu: number; class: VictimClass }>()
  for (const { gpu, missingMib, candidates } of shortages) {
    const leaving = new Set(victims.map((victim) => victim.id))
    const stillMib = missingMib - totalOf(candidates.filter((task) => leaving.has(task.id)))
    if (stillMib <= 0) continue
    for (const task of take(
      candidates.filter((each) => !leaving.has(each.id)),
      stillMib,
    )) {
      victims.push({ id: task.id, gpu, class: task.class, rule: 'whole_level' })
      if (task.isSwappedThisRound) closed.set(`${gpu} ${task.class}`, { gpu, class: task.class })
    }
  }
  return { covered: true, victims, closedRounds: [...closed.values()] }
}

function plainReading(shortages: readonly Shortage[], mode: 'cover' | 'collect'): VictimChoice {
  for (const { gpu, missingMib, candidates } of shortages) {
    const haveMib = totalOf(candidates)
    if (mode === 'cover' && haveMib < missingMib) return { covered: false, gpu, haveMib, needMib: missingMib }
  }
  const victims: Victim[] = []
  const closedRounds: { gpu: number; class: VictimClass }[] = []
  for (const { gpu, missingMib, candidates } of shortages) {
    const isLeaving = (task: Candidate) => victims.some((victim) => victim.id === task.id)
    const free = candidates.filter((task) => !isLeaving(task))
    for (let rank = 0; rank < 4 * CLASSES.length; rank++) {
      const stillMib = missingMib - totalOf(candidates.filter(isLeaving))
      const members = free.filter((task) => plainRankOf(task) === rank)
      const ids = new Set(
        stillMib <= 0 ? [] : totalOf(members) <= stillMib ? sortedIds(members) : plainCut(members, stillMib),
      )
      const taken = members
        .filter((task) => ids.has(task.id))
        .sort((a, b) => swapOutAge(a) - swapOutAge(b) || byCodeUnits(a.id, b.id))
      const rule = totalOf(members) <= stillMib ? 'whole_level' : 'oldest_then_fewest_bytes'
      for (const task of taken) victims.push({ id: task.id, gpu, class: task.class, rule })
      for (const task of taken.filter(({ isSwappedThisRound }) => isSwappedThisRound))
        if (!closedRounds.some((closed) => closed.gpu === gpu && closed.class === task.class))
          closedRounds.push({ gpu, class: task.class })
    }
  }
  return { covered: true, victims, closedRounds }
}

/** Class, then swapped in this round, then above the request. */
function plainRankOf(task: Candidate): number {
  const isLast = [isP0(task), isKeptWarm(task), task.isSwappedThisRound, !task.isAboveRequest]
  return isLast.reduce((rank, each) => 2 * rank + Number(each), 0)
}

/** The oldest complete tie blocks that cover the shortage, and the best of all their subsets. */
function plainCut(level: readonly Candidate[], missingMib: number): string[] {
  const ages = [...new Set(level.map(swapOutAge))].sort((a, b) => a - b)
  for (const age of ages) {
    const blocks = level.filter((task) => swapOutAge(task) <= age)
    if (totalOf(blocks) >= missingMib) return bestSubset(blocks, missingMib)
  }
  throw new Error('the level does not cover')
}

/** Best of all 2^n covering subsets: least VRAM, fewest tasks, longest idle, smallest ids. */
function bestSubset(tasks: readonly Candidate[], missingMib: number): string[] {
  let best: readonly Candidate[] | null = null
  for (let mask = 1; mask < 1 << tasks.length; mask++) {
    const subset = tasks.filter((_, index) => (mask & (1 << index)) !== 0)
    if (totalOf(subset) >= missingMib && (best === null || comparePlainly(subset, best) < 0)) best = subset
  }
  return sortedIds(best ?? [])
}

function comparePlainly(a: readonly Candidate[], b: readonly Candidate[]): number {
  const idle = (tasks: readonly Candidate[]) => tasks.reduce((sum, task) => sum + task.idleMs, 0)
  const byNumbers = totalOf(a) - totalOf(b) || a.length - b.length || idle(b) - idle(a)
  if (byNumbers !== 0) return byNumbers
  const others = sortedIds(b)
  return sortedIds(a).reduce((sooner, id, index) => sooner || byCodeUnits(id, others[index] ?? ''), 0)
}

/** Smallest sum of some of the sizes that is at least `missingMib`, from the set of all sums. */
function leastCoverMib(mibs: readonly number[], missingMib: number): number {
  const top = mibs.reduce((sum, mib) => sum + mib, 0)
  const isSum = new Uint8Array(top + 1)
  isSum[0] = 1
  for (const mib of mibs) for (let sum = top; sum >= mib; sum--) if (isSum[sum - mib] === 1) isSum[sum] = 1
  return isSum.indexOf(1, missingMib)
}

/** Not in index order, so that order by id differs from order of arrival. */
function nameOf(index: number): string {
  return `${'hdbfaceg'[index % 8] ?? ''}${index}`
}

function indexOf(task: Candidate): number {
  return Number(task.id.slice(1))
}

function sortedIds(tasks: readonly Candidate[]): string[] {
  return tasks.map((task) => task.id).sort(byCodeUnits)
}

function plainCandidate(id: string, mib: number): Candidate {
  const fresh = { isAboveRequest: false, isSwappedThisRound: false, lastSwapOut: null }
  return { id, class: 'non_p0', idleMs: 400_000, mib, ...fresh }
}

function isP0(task: Candidate): boolean {
  return task.class === 'p0' || task.class === 'p0_warm'
}

function isKeptWarm(task: Candidate): boolean {
  return task.class === 'non_p0_warm' || task.class === 'p0_warm'
}

function modelTask(fields: Partial<ModelTask>): ModelTask {
  const usual = { isP0: false, isKeptWarm: false, aboveAt: 0, mib: 1, gpus: 1, joins: 0, leaves: Infinity }
  return { ...usual, ...fields }
}

function repeat(count: number, fields: Partial<Decision> & Pick<Decision, 'needMib'>): Decision[] {
  return Array.from({ length: count }, () => ({ notEligible: 0, isForP0: false, mode: 'cover', ...fields }))
}

function shuffle<T>(items: readonly T[], numbers: fc.Stream<number>): T[] {
  const keyed = items.map((item, index) => ({ item, index, key: numbers.next().value ?? 0 }))
  return keyed.sort((a, b) => a.key - b.key || b.index - a.index).map(({ item }) => item)
}

/** Fails with the seed, the smallest counterexample, and the command that repeats it. */
function holds<T extends unknown[]>(property: fc.IProperty<T>, numRuns: number): void {
  const details = fc.check(property, { seed: SEED, numRuns })
  if (details.failed)
    throw new Error(`${fc.defaultReportMessage(details)}\nrepeat: node_modules/.bin/vitest run ${FILE}`, {
      cause: details.errorInstance,
    })
}
