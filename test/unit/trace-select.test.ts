import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSelection, selectTasks, type TraceSelection } from '../../simulator/trace/select.ts'
import { TraceError } from '../../simulator/trace/trace-error.ts'

interface Arrival {
  id: string
  at: number
  gpus: number
  cancel_at: number | null
}

const arrivals = (n: number): Arrival[] =>
  Array.from({ length: n }, (_, i) => ({ id: `t${i}`, at: 1000 * i, gpus: 1 + (i % 8), cancel_at: null }))

async function select(
  tasks: readonly Arrival[],
  options: TraceSelection,
): Promise<{ kept: Arrival[]; dropped: Record<string, number> }> {
  const kept: Arrival[] = []
  const dropped: Record<string, number> = {}
  for await (const task of selectTasks(
    tasks,
    options,
    (reason) => (dropped[reason] = (dropped[reason] ?? 0) + 1),
  ))
    kept.push(task)
  return { kept, dropped }
}

describe('a selection of a trace', () => {
  it('without options keeps every task object unchanged', () => {
    const task = arrivals(1)[0]!
    expect(createSelection({})(task)).toBe(task)
  })
  it('keeps the window from (inclusive) to (exclusive), and shifts time to its beginning', async () => {
    const { kept, dropped } = await select(arrivals(10), { fromMs: 3000, toMs: 6000 })
    // prettier-ignore
    expect(kept.map((task) => [task.id, task.at])).toEqual([['t3', 0], ['t4', 1000], ['t5', 2000]])
    expect(dropped).toEqual({ outside_window: 7 })
  })
  it('keeps the offset on request', async () => {
    const { kept } = await select(arrivals(10), { fromMs: 8000, keepOffset: true, timeScale: 0.5 })
    expect(kept.map((task) => task.at)).toEqual([4000, 4500])
  })
  it('scales only arrivals: a cancellation keeps its distance', () => {
    const task: Arrival = { id: 'a', at: 100_000, gpus: 1, cancel_at: 130_000 }
    expect(createSelection({ timeScale: 0.01 })(task)).toEqual({
      id: 'a',
      at: 1000,
      gpus: 1,
      cancel_at: 31_000,
    })
    expect(createSelection({ timeScale: 2, fromMs: 90_000 })(task)).toEqual({
      id: 'a',
      at: 20_000,
      gpus: 1,
      cancel_at: 50_000,
    })
  })
  it('never changes the order of arrivals', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 1e9 }),
        fc.nat({ max: 1e9 }),
        fc.double({ min: 1e-6, max: 1000, noNaN: true }),
        (a, b, timeScale) => {
          const at = (ms: number): number =>
            (createSelection({ timeScale })({ id: 'x', at: ms, gpus: 1, cancel_at: null }) as Arrival).at
          expect(Math.sign(at(Math.max(a, b)) - at(Math.min(a, b)))).toBeGreaterThanOrEqual(0)
        },
      ),
    )
  })
  it('leaves out tasks with too many GPUs', async () => {
    const { kept, dropped } = await select(arrivals(8), { maxGpus: 2 })
    expect(kept.map((task) => task.gpus)).toEqual([1, 2])
    expect(dropped).toEqual({ too_many_gpus: 6 })
  })
  it('samples the given share, by seed and id alone', async () => {
    const { kept } = await select(arrivals(20_000), { sample: 0.2, seed: 7 })
    expect(kept.length / 20_000).toBeCloseTo(0.2, 2)
    // prettier-ignore
    const evens = await select(arrivals(20_000).filter((_, i) => i % 2 === 0), { sample: 0.2, seed: 7 })
    expect(evens.kept).toEqual(kept.filter((task) => Number(task.id.slice(1)) % 2 === 0))
    expect((await select(arrivals(20_000), { sample: 0.2, seed: 8 })).kept).not.toEqual(kept)
  })
  it('has a smaller sample as part of a larger one', async () => {
    const small = (await select(arrivals(2000), { sample: 0.1 })).kept
    const large = new Set((await select(arrivals(2000), { sample: 0.3 })).kept.map((task) => task.id))
    expect(small.every((task) => large.has(task.id))).toBe(true)
  })
  it.each([
    [{ timeScale: 0 }, 'time_scale: must be a finite number above 0, is 0'],
    [{ timeScale: NaN }, 'time_scale: must be'],
    [{ sample: 0 }, 'sample: must be above 0 and at most 1, is 0'],
    [{ sample: 1.1 }, 'sample: must be'],
    [{ fromMs: -1 }, 'from: must be a whole number of 0 or more, is -1'],
    [{ fromMs: 5, toMs: 5 }, 'to: must be a whole number of 6 or more, is 5'],
    [{ maxGpus: 0.5 }, 'max_gpus: must be a whole number of 1 or more, is 0.5'],
  ])('refuses %j', (options, message) => {
    expect(() => createSelection(options)).toThrow(TraceError)
    expect(() => createSelection(options)).toThrow(message)
  })
  it('refuses a scale that makes arrivals overflow', () => {
    expect(() => createSelection({ timeScale: 1e200 })(arrivals(2)[1]!)).toThrow(
      'time_scale: 1e+200 puts task t1 later than can be counted',
    )
  })
})
