import { describe, expect, it } from 'vitest'
import { byCodeUnits } from '../../controller/structures/order.ts'
import { enactRound, forgetTask, markOf, newGpuRounds } from '../../controller/policy/swap/rounds.ts'
import { fewestBytesCovering } from '../../controller/policy/swap/subset.ts'
import { chooseVictims } from '../../controller/policy/swap/victims.ts'
import type { GpuRounds } from '../../controller/policy/swap/rounds.ts'
import type { Candidate, VictimChoice } from '../../controller/policy/swap/victims.ts'
import { readVectors } from '../support/vectors.ts'

interface VectorTask {
  id: string
  priority: number
  vram_mib: number
  noswap: 0 | 1
  wants: boolean
  idle_ms: number
  swapped_this_round: boolean
  last_swap_out: number | null
}

interface VectorCase {
  name: string
  tasks: VectorTask[]
  requester: { id: string; priority: number }
  shortage_mib: number
  idle_period_ms: number
  expect: { victims: string[]; rounds_closed: string[] } | { refusal: string }
}

interface VectorSequence {
  tasks: { id: string; vram_mib: number }[]
  shortage_mib: number
  decisions: number
  victims: string[]
  swap_outs: Record<string, number>
}

const GB = 1024

describe('chooseVictims according to the vectors', () => {
  const vectors = readVectors<{ cases: VectorCase[]; sequences: VectorSequence[] }>('victims.json')

  it('has cases and sequences', () => {
    expect(vectors.cases.length).toBeGreaterThan(0)
    expect(vectors.sequences.length).toBeGreaterThan(0)
  })

  for (const vector of vectors.cases) {
    it(vector.name, () => {
      const choice = chooseVictims([
        { gpu: 0, missingMib: vector.shortage_mib, candidates: eligibleOf(vector) },
      ])
      if ('refusal' in vector.expect) return expect(choice.covered).toBe(false)
      expect(idsOf(choice).sort(byCodeUnits)).toEqual(vector.expect.victims.toSorted(byCodeUnits))
      expect(closedOf(choice)).toEqual(vector.expect.rounds_closed.map((name) => `0 ${name}`))
    })
  }

  for (const [index, vector] of vectors.sequences.entries()) {
    it(`sequence ${index}: ${vector.decisions} decisions of ${vector.shortage_mib} MiB`, () => {
      const rounds = newGpuRounds()
      const victims: string[] = []
      const swapOuts: Record<string, number> = {}
      for (let decision = 1; decision <= vector.decisions; decision++) {
        const candidates = vector.tasks.map((task) =>
          booked(rounds, candidate({ id: task.id, mib: task.vram_mib })),
        )
        const choice = chooseVictims([{ gpu: 0, missingMib: vector.shortage_mib, candidates }])
        const ids = idsOf(choice).sort(byCodeUnits)
        victims.push(ids.join('+'))
        for (const id of ids) swapOuts[id] = (swapOuts[id] ?? 0) + 1
        if (choice.covered) enactRound([rounds], choice, decision)
      }
      expect(victims).toEqual(vector.victims)
      expect(swapOuts).toEqual(vector.swap_outs)
    })
  }
})

describe('chooseVictims on one GPU', () => {
  it('chooses no victim if no VRAM is missing', () => {
    expect(chooseVictims([{ gpu: 0, missingMib: 0, candidates: [candidate({})] }])).toEqual({
      covered: true,
      victims: [],
      closedRounds: [],
    })
  })

  it('returns available and needed VRAM if the candidates do not cover the shortage', () => {
    const candidates = [candidate({ id: 'a', mib: 3 * GB }), candidate({ id: 'b', mib: 4 * GB })]
    expect(chooseVictims([{ gpu: 2, missingMib: 8 * GB, candidates }])).toEqual({
      covered: false,
      gpu: 2,
      haveMib: 7 * GB,
      needMib: 8 * GB,
    })
  })

  it('stops after a level that covers exactly the missing VRAM', () => {
    const candidates = [
      candidate({ id: 'a', mib: 4 * GB }),
      candidate({ id: 'b', mib: 4 * GB, isSwappedThisRound: true, lastSwapOut: 1 }),
    ]
    expect(chooseVictims([{ gpu: 0, missingMib: 4 * GB, candidates }])).toEqual({
      covered: true,
      victims: [{ id: 'a', gpu: 0, class: 'non_p0', rule: 'whole_level' }],
      closedRounds: [],
    })
  })

  it('The tasks of a level with a surplus leave by rule 3, those of a whole level by rule 2', () => {
    const swapped = { isSwappedThisRound: true, lastSwapOut: 1 }
    const candidates = [
      candidate({ id: 'a', mib: 4 * GB }),
      candidate({ id: 'b', mib: 4 * GB, ...swapped }),
      candidate({ id: 'c', mib: 4 * GB, ...swapped }),
    ]
    const choice = chooseVictims([{ gpu: 0, missingMib: 8 * GB, candidates }])
    expect(choice.covered && choice.victims.map(({ id, rule }) => [id, rule])).toEqual([
      ['a', 'whole_level'],
      ['b', 'oldest_then_fewest_bytes'],
    ])
  })

  it('closes the rounds of both classes when both are used up', () => {
    const swapped = { mib: 4 * GB, isSwappedThisRound: true, lastSwapOut: 1 }
    const candidates = [
      candidate({ id: 'p', class: 'p0', ...swapped }),
      candidate({ id: 'n', ...swapped }),
      candidate({ id: 'm', mib: GB }),
    ]
    const choice = chooseVictims([{ gpu: 0, missingMib: 8 * GB, candidates }])
    expect(idsOf(choice)).toEqual(['m', 'n', 'p'])
    expect(closedOf(choice)).toEqual(['0 non_p0', '0 p0'])
  })

  it('considers subsets of all levels it used, not only of the last', () => {
    const candidates = [
      candidate({ id: 'old', mib: 10, lastSwapOut: 1 }),
      candidate({ id: 'recent', mib: 20, lastSwapOut: 2 }),
    ]
    expect(idsOf(chooseVictims([{ gpu: 0, missingMib: 15, candidates }]))).toEqual(['recent'])
  })

  it('in collect mode takes all candidates if they do not cover, by level, oldest first', () => {
    const candidates = [
      candidate({ id: 'p', class: 'p0' }),
      candidate({ id: 's', isSwappedThisRound: true, lastSwapOut: 9 }),
      candidate({ id: 'a', lastSwapOut: 4 }),
      candidate({ id: 'b' }),
    ]
    const choice = chooseVictims([{ gpu: 0, missingMib: 80 * GB, candidates }], 'collect')
    expect(idsOf(choice)).toEqual(['b', 'a', 's', 'p'])
    expect(closedOf(choice)).toEqual(['0 non_p0'])
  })

  it('in collect mode chooses as usual if the candidates cover the shortage', () => {
    const candidates = [
      candidate({ id: 'a', mib: 10 * GB }),
      candidate({ id: 'b', mib: 12 * GB }),
      candidate({ id: 'c', mib: 14 * GB }),
    ]
    expect(idsOf(chooseVictims([{ gpu: 0, missingMib: 11 * GB, candidates }], 'collect'))).toEqual(['b'])
  })
})

describe('chooseVictims on several GPUs', () => {
  const wide = candidate({ id: 'wide', mib: 8 * GB })
  const narrow = candidate({ id: 'narrow', mib: 8 * GB, idleMs: 900_000 })

  it('counts a victim on every GPU it uses and chooses it once', () => {
    const choice = chooseVictims([
      { gpu: 1, missingMib: 8 * GB, candidates: [narrow, wide] },
      { gpu: 0, missingMib: 8 * GB, candidates: [wide] },
    ])
    expect(choice).toEqual({
      covered: true,
      victims: [{ id: 'wide', gpu: 0, class: 'non_p0', rule: 'whole_level' }],
      closedRounds: [],
    })
  })

  it('adds only the VRAM that a GPU lacks after the victims of earlier GPUs', () => {
    const choice = chooseVictims([
      { gpu: 0, missingMib: 8 * GB, candidates: [wide] },
      { gpu: 3, missingMib: 9 * GB, candidates: [wide, narrow] },
    ])
    expect(choice.covered && choice.victims.map((victim) => `${victim.id} on ${victim.gpu}`)).toEqual([
      'wide on 0',
      'narrow on 3',
    ])
  })

  it('chooses no victim if one GPU is not covered', () => {
    const choice = chooseVictims([
      { gpu: 0, missingMib: 8 * GB, candidates: [wide] },
      { gpu: 1, missingMib: 17 * GB, candidates: [wide, narrow] },
    ])
    expect(choice).toEqual({ covered: false, gpu: 1, haveMib: 16 * GB, needMib: 17 * GB })
  })

  it('closes the round only of the GPU for which the victim was chosen', () => {
    const swapped = { ...wide, isSwappedThisRound: true, lastSwapOut: 1 }
    const choice = chooseVictims([
      { gpu: 0, missingMib: 8 * GB, candidates: [wide] },
      { gpu: 1, missingMib: 8 * GB, candidates: [swapped, narrow] },
    ])
    expect(closedOf(choice)).toEqual([])
  })
})

describe('the smallest covering subset', () => {
  it('requires candidates that cover the shortage: otherwise an invariant is broken', () => {
    expect(() => fewestBytesCovering([candidate({ mib: 5 })], 6)).toThrow('broken invariant')
  })

  it('is chosen by the sorted list of ids if all else is equal', () => {
    const tasks = ['d', 'a', 'c', 'b'].map((id, index) => candidate({ id, mib: [7, 4, 6, 3][index] ?? 0 }))
    expect(
      fewestBytesCovering(tasks, 10)
        .map((task) => task.id)
        .sort(byCodeUnits),
    ).toEqual(['a', 'c'])
  })
})

describe('the rounds of a GPU', () => {
  const victim = { id: 'a', gpu: 0, class: 'non_p0' as const }

  it('mark a new victim in the current round', () => {
    const rounds = newGpuRounds()
    enactRound([rounds], { victims: [victim], closedRounds: [] }, 7)
    expect(booked(rounds, candidate({ id: 'a' }))).toMatchObject({ isSwappedThisRound: true, lastSwapOut: 7 })
    expect(booked(rounds, candidate({ id: 'newcomer' }))).toMatchObject({
      isSwappedThisRound: false,
      lastSwapOut: null,
    })
  })

  it('start a new round with only the victims that were already swapped', () => {
    const rounds = newGpuRounds()
    enactRound([rounds], { victims: [victim, { ...victim, id: 'c' }], closedRounds: [] }, 1)
    enactRound(
      [rounds],
      { victims: [victim, { ...victim, id: 'b' }], closedRounds: [{ gpu: 0, class: 'non_p0' }] },
      2,
    )
    const swapped = ['a', 'b', 'c'].filter((id) => booked(rounds, candidate({ id })).isSwappedThisRound)
    expect(swapped).toEqual(['a'])
    expect(rounds.p0.round).toBe(0)
  })

  it('never contain a task twice', () => {
    const rounds = newGpuRounds()
    enactRound([rounds], { victims: [victim], closedRounds: [] }, 1)
    expect(() => enactRound([rounds], { victims: [victim], closedRounds: [] }, 2)).toThrow('swapped twice')
  })

  it('exist only for GPUs of the node', () => {
    expect(() => enactRound([], { victims: [victim], closedRounds: [] }, 1)).toThrow(
      'no rounds are kept for GPU 0',
    )
  })

  it('forget a task, which is then new', () => {
    const rounds = newGpuRounds()
    enactRound([rounds], { victims: [victim], closedRounds: [] }, 1)
    forgetTask(rounds, 'a')
    expect(booked(rounds, candidate({ id: 'a' }))).toMatchObject({
      isSwappedThisRound: false,
      lastSwapOut: null,
    })
  })
})

function candidate(fields: Partial<Candidate>): Candidate {
  return {
    id: 'task',
    class: 'non_p0',
    isAboveRequest: false,
    idleMs: 400_000,
    mib: 8 * GB,
    isSwappedThisRound: false,
    lastSwapOut: null,
    ...fields,
  }
}

/** The candidate with its state in the rounds of its GPU. */
function booked(rounds: GpuRounds, task: Candidate): Candidate {
  const state = rounds[task.class]
  const mark = markOf(state, task.id)
  return { ...task, isSwappedThisRound: mark.round === state.round, lastSwapOut: mark.lastSwapOut }
}

/**
 * Eligibility according to the vectors, with all tasks resident. The refusals' `retry_in_ms` concerns
 * eligibility, not the choice.
 */
function eligibleOf(vector: VectorCase): Candidate[] {
  return vector.tasks
    .filter(
      (task) =>
        task.noswap === 0 &&
        !task.wants &&
        task.idle_ms >= vector.idle_period_ms &&
        task.id !== vector.requester.id,
    )
    .filter((task) => task.priority !== 0 || vector.requester.priority === 0)
    .map((task) => ({
      id: task.id,
      class: task.priority === 0 ? 'p0' : 'non_p0',
      isAboveRequest: false,
      idleMs: task.idle_ms,
      mib: task.vram_mib,
      isSwappedThisRound: task.swapped_this_round,
      lastSwapOut: task.last_swap_out,
    }))
}

function idsOf(choice: VictimChoice): string[] {
  return choice.covered ? choice.victims.map((victim) => victim.id) : []
}

function closedOf(choice: VictimChoice): string[] {
  return choice.covered ? choice.closedRounds.map((closed) => `${closed.gpu} ${closed.class}`) : []
}
