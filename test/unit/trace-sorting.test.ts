/** Records that do not fit in memory are sorted on disk, with the same result. */
import { readdirSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inArrivalOrder } from '../../simulator/trace/import/arrival-order.ts'
import { type ImportedTask, plainTask } from '../../simulator/trace/import/importer.ts'
import { NumberedBits } from '../../simulator/trace/import/numbered-bits.ts'
import { MERGE_BYTES, RecordSorter, type SortRecord } from '../../simulator/trace/import/record-sorter.ts'
import { openSpillFile, type SpillFile } from '../../simulator/trace/import/spill-file.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { collect } from '../support/imported.ts'

const folder = temporaryFolder()
const spill = (): Promise<SpillFile> => openSpillFile(folder)
const neverSpills = (): Promise<SpillFile> => Promise.reject(new Error('it spilled'))

async function sorted(
  records: readonly SortRecord[],
  open: () => Promise<SpillFile>,
  runCharacters?: number,
): Promise<SortRecord[]> {
  const sorter = new RecordSorter(open, runCharacters)
  for (const record of records) await sorter.add(record)
  const once = (await collect(sorter.sorted())).flat()
  expect((await collect(sorter.sorted())).flat()).toEqual(once)
  await sorter.close()
  return once
}

describe('a record sorter', () => {
  it('gives equal results on disk and in memory, for any records and run lengths', async () => {
    const record = fc.record({
      key: fc.integer({ min: -5, max: 5 }),
      text: fc.string({ maxLength: 20, unit: 'grapheme' }),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { maxLength: 60 }),
        fc.integer({ min: 1, max: 200 }),
        async (drawn, runCharacters) => {
          const records = drawn.map(({ key, text }, tie) => ({ key, tie, text: JSON.stringify(text) }))
          const inOrder = records.toSorted((a, b) => a.key - b.key || a.tie - b.tie)
          expect(await sorted(records, spill, runCharacters)).toEqual(inOrder)
          expect(await sorted(records, neverSpills)).toEqual(inOrder)
        },
      ),
      { numRuns: 60 },
    )
  })
  it('accepts records longer than its read buffer', async () => {
    const records = ['a', 'ü', 'c'].map((letter, i) => ({ key: 3 - i, tie: i, text: letter.repeat(200_000) }))
    expect(await sorted(records, spill, 1000)).toEqual(records.toReversed())
  })
  it('reads smaller parts of each run if there are more runs', async () => {
    const runs = 600
    let largest = 0
    const watched = async (): Promise<SpillFile> => {
      const file = await spill()
      return {
        ...file,
        read: (offset, bytes) => ((largest = Math.max(largest, bytes)), file.read(offset, bytes)),
      }
    }
    const records = Array.from({ length: 4 * runs }, (_, tie) => ({
      key: tie % 7,
      tie,
      text: 'x'.repeat(10_000),
    }))
    await sorted(records, watched, 40_000)
    expect(largest).toBe(Math.floor(MERGE_BYTES / runs))
  })
  it('leaves no file behind, even during its work', async () => {
    const sorter = new RecordSorter(spill, 1)
    await sorter.add({ key: 1, tie: 1, text: 'x' })
    expect(readdirSync(folder)).toEqual([])
    await sorter.close()
  })
  it('names a folder that cannot hold its runs', async () => {
    await expect(
      sorted([{ key: 1, tie: 1, text: 'x' }], () => openSpillFile('/proc/none'), 1),
    ).rejects.toThrow(/^\/proc\/none: cannot hold what is sorted there: /)
  })
})

describe('the order of arrival', () => {
  const task = (id: string, at: number, more: Partial<ImportedTask> = {}): ImportedTask =>
    plainTask({ id, at, gpus: 1, work: { kind: 'residence', ms: 5 }, ...more }, {})
  async function* given(tasks: readonly ImportedTask[]): AsyncGenerator<ImportedTask> {
    yield* tasks
  }

  it.each([
    ['in memory', undefined],
    ['through runs on disk', 50],
  ])('keeps all fields of a task, and the first task of each id, %s', async (_how, runCharacters) => {
    const phases = { kind: 'phases', phases: [[1, 2], [3, 4]] } as const // prettier-ignore
    const tasks = [
      task('b', 9, { owner: 'Zoë', groups: ['g'], work: phases, alloc: [[0, 5]], cancel_at: 12 }),
      task('a', 5),
      task('b', 1),
      task('c', 5, { gpu_mode: 'exclusive', vram_mib: 0, priority: 0, noswap: 1 }),
      task('b', 9),
      task('d', -3),
    ]
    const order = await inArrivalOrder(given(tasks), spill, runCharacters)
    expect(order.duplicates).toBe(2)
    expect(await collect(order.tasks())).toEqual([tasks[5], tasks[1], tasks[3], tasks[0]])
    await order.close()
  })
  it('finds repeated ids among many tasks', async () => {
    const ids = Array.from({ length: 3000 }, (_, i) => `task-${i % 1999}`)
    const order = await inArrivalOrder(given(ids.map((id, i) => task(id, 3000 - i))), spill, 4000)
    const tasks = await collect(order.tasks())
    expect([order.duplicates, tasks.length, new Set(tasks.map(({ id }) => id)).size]).toEqual([
      1001, 1999, 1999,
    ])
    await order.close()
  })
  it('closes its files when the source fails', async () => {
    async function* broken(): AsyncGenerator<ImportedTask> {
      yield task('a', 1)
      throw new Error('broken')
    }
    await expect(inArrivalOrder(broken(), spill, 1)).rejects.toThrow('broken')
  })
})

describe('a set of numbered bits', () => {
  it('contains exactly the added numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 100_000 })), fc.nat({ max: 200_000 }), (numbers, other) => {
        const bits = new NumberedBits()
        for (const number of numbers) bits.add(number)
        expect(numbers.every((number) => bits.has(number))).toBe(true)
        expect(bits.has(other)).toBe(numbers.includes(other))
        expect(bits.count).toBe(new Set(numbers).size)
      }),
    )
  })
})
