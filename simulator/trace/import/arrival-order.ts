/**
 * Puts the tasks of a source in the order of arrival, each id once, in bounded memory: sources are neither
 * sorted nor free of repetitions.
 */
import { NumberedBits } from './numbered-bits.ts'
import type { ImportedTask } from './importer.ts'
import { RecordSorter } from './record-sorter.ts'
import type { SpillFile } from './spill-file.ts'

export interface ArrivalOrder {
  readonly duplicates: number
  /** 1. Arrival. 2. Order in the source. May be read repeatedly. */
  tasks(): AsyncGenerator<ImportedTask>
  close(): Promise<void>
}

/**
 * Of tasks with the same id, the first in the source counts.
 * @param runCharacters size of a sorted run in memory, for tests
 */
export async function inArrivalOrder(
  tasks: AsyncIterable<ImportedTask>,
  openSpill: () => Promise<SpillFile>,
  runCharacters?: number,
): Promise<ArrivalOrder> {
  const byArrival = new RecordSorter(openSpill, runCharacters)
  const byId = new RecordSorter(openSpill, runCharacters)
  const close = async (): Promise<void> => void (await Promise.all([byArrival.close(), byId.close()]))
  try {
    let number = 0
    for await (const task of tasks) {
      const isSpilling = byArrival.add({ key: task.at, tie: number, text: textOf(task) })
      if (isSpilling !== undefined) await isSpilling
      const isSpillingIds = byId.add({ key: hashOf(task.id), tie: number, text: JSON.stringify(task.id) })
      if (isSpillingIds !== undefined) await isSpillingIds
      number += 1
    }
    const repeated = await repetitions(byId)
    await byId.close()
    return { duplicates: repeated.count, tasks: () => tasksIn(byArrival, repeated), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function* tasksIn(sorter: RecordSorter, left: NumberedBits): AsyncGenerator<ImportedTask> {
  for await (const batch of sorter.sorted()) {
    for (const { key, tie, text } of batch) if (!left.has(tie)) yield taskOf(key, text)
  }
}

/**
 * Positions of the tasks with a repeated id. Ids with the same hash are adjacent, in the order of the source.
 */
async function repetitions(byId: RecordSorter): Promise<NumberedBits> {
  const repeated = new NumberedBits()
  let key = -1
  let first = ''
  const others = new Set<string>()
  for await (const batch of byId.sorted()) {
    for (const record of batch) {
      if (record.key !== key) {
        key = record.key
        first = record.text
        others.clear()
      } else if (record.text === first || others.has(record.text)) repeated.add(record.tie)
      else others.add(record.text)
    }
  }
  return repeated
}

type Fields = readonly [
  id: string,
  gpus: number,
  vramMib: number,
  gpuMode: ImportedTask['gpu_mode'],
  priority: ImportedTask['priority'],
  noswap: ImportedTask['noswap'],
  groups: ImportedTask['groups'],
  owner: string | null,
  work: ImportedTask['work'],
  alloc: ImportedTask['alloc'],
  cancelAt: number | null,
]

function textOf({
  id,
  gpus,
  vram_mib,
  gpu_mode,
  priority,
  noswap,
  groups,
  owner,
  work,
  alloc,
  cancel_at,
}: ImportedTask): string {
  const fields: Fields = [
    id,
    gpus,
    vram_mib,
    gpu_mode,
    priority,
    noswap,
    groups,
    owner,
    work,
    alloc,
    cancel_at,
  ]
  return JSON.stringify(fields)
}

function taskOf(at: number, text: string): ImportedTask {
  const [id, gpus, vram_mib, gpu_mode, priority, noswap, groups, owner, work, alloc, cancel_at] = JSON.parse(
    text,
  ) as Fields
  return { id, at, gpus, vram_mib, gpu_mode, priority, noswap, groups, owner, work, alloc, cancel_at }
}

/** 52 bits, so that different ids rarely collide: FNV-1a (Fowler, Noll, Vo) twice, with different offsets. */
function hashOf(id: string): number {
  let [low, high] = [0x811c9dc5, 0x050c5d1f]
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i)
    low = Math.imul(low ^ unit, 0x01000193)
    high = Math.imul(high ^ (unit + i), 0x01000193)
  }
  return (high >>> 12) * 4_294_967_296 + (low >>> 0)
}
