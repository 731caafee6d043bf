/** A data folder that lost a part of its history: no start serves while an acknowledged change is missing. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { faultOf } from '../../controller/adapters/sqlite/faults.ts'
import { openForReading, openForWriting } from '../../controller/adapters/sqlite/opening.ts'
import { loadRows, taskById } from '../../controller/adapters/sql/queries.ts'
import { decodeState, decodeTask } from '../../controller/adapters/sql/rows.ts'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { createWriter } from '../../controller/adapters/sqlite/writer.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { controllerOn, figure, newFolder } from './controller-on.ts'
import {
  copyFolder,
  flipBit,
  killedFolder,
  loseLog,
  setBack,
  type Acknowledged,
  type Damage,
  type KilledFolder,
} from './damaged-folders.ts'

const SEED = figure('LOSS_SEED', 1)
/** Number of the first case of each kind, to continue an interrupted run. */
const FROM = figure('LOSS_FROM', 0)
const BITS = figure('LOSS_BITS', 40)
const LOGS = figure('LOSS_LOGS', 10)
const OLDER = figure('LOSS_OLDER', 10)
/** Number of cases of each kind that are also started with real processes. */
const PROCESSES = figure('LOSS_PROCESSES', 1)

let killed: KilledFolder
beforeAll(async () => {
  killed = await killedFolder()
}, 180_000)

type Start =
  | { readonly served: true; readonly missing: readonly string[] }
  | { readonly served: false; readonly line: string }

/** As the store's two threads open it, but in this thread. */
async function start(dataDir: string): Promise<Start> {
  const path = join(dataDir, STORE_FILE)
  const settings = {
    ...{ path, busyTimeoutMs: 0, maxPages: null, isStoreExpected: true, acceptLoss: null, kind: null },
    retention: { maxEvents: 1_000_000, maxBytes: null, maxAgeMs: null },
    decisionRetention: { maxDecisions: 200_000, maxAgeMs: 30 * 86_400_000 },
  }
  try {
    const writing = await openForWriting(settings)
    try {
      createWriter(writing.db, settings, { wallNow: Date.now, monotonicNow: () => performance.now() })
      const reading = openForReading(settings)
      try {
        return { served: true, missing: await missingIn(kyselyOf(reading)) }
      } finally {
        reading.close()
      }
    } finally {
      writing.close()
    }
  } catch (error) {
    return { served: false, line: faultOf(error, path).message }
  }
}

async function missingIn(db: ReturnType<typeof kyselyOf>): Promise<readonly string[]> {
  const open = new Map(decodeState(await loadRows(db)).openTasks.map((task) => [task.id, task]))
  const missing: string[] = []
  for (const [id, told] of killed.tasks) {
    const record = open.get(id) ?? (await finalTask(db, id))
    if (!isAsTold(record, told)) missing.push(`${id} ${told.name}`)
  }
  return missing
}

async function finalTask(db: ReturnType<typeof kyselyOf>, id: string): Promise<TaskRecord | null> {
  const record = await taskById(db, id)
  return record === null ? null : decodeTask(record)
}

function isAsTold(record: TaskRecord | null, { name, isCancelled }: Acknowledged): boolean {
  return record !== null && record.name === name && (record.state === 'cancelled') === isCancelled
}

interface Tally {
  served: number
  refused: number
  readonly lines: Map<string, number>
  readonly failures: string[]
}

async function damageAndStart(
  kind: string,
  number: number,
  damage: Damage,
  tally: Tally,
  folder: string,
): Promise<void> {
  copyFolder(killed.folder, folder)
  const what = damage(folder, seededStream(SEED, `${kind}-${number}`))
  const result = await start(folder)
  if (result.served) {
    tally.served += 1
    if (result.missing.length > 0) {
      tally.failures.push(
        `LOSS_SEED=${SEED} ${kind} ${number}, ${what}: missing ${result.missing.join(', ').slice(0, 200)}`,
      )
    }
    return
  }
  tally.refused += 1
  if (/\n|undefined|\[object|SyntaxError|broken invariant/.test(result.line)) {
    tally.failures.push(`LOSS_SEED=${SEED} ${kind} ${number}, ${what}: not a clear line: ${result.line}`)
  }
  const sentence = result.line.replaceAll(folder, '').replaceAll(/[0-9a-f-]*\d[\w.:-]*/g, 'N')
  tally.lines.set(sentence, (tally.lines.get(sentence) ?? 0) + 1)
}

async function startProcess(kind: string, number: number, damage: Damage, folder: string): Promise<string> {
  copyFolder(killed.folder, folder)
  const what = damage(folder, seededStream(SEED, `${kind}-${number}`))
  const controller = controllerOn(folder)
  try {
    await controller.start()
  } catch {
    expect(controller.member.output.trim(), what).toMatch(/^headroom: [^\n]+$/)
    return 'refused'
  }
  for (const [id, { name }] of killed.tasks) {
    const answer = (await (await fetch(`${controller.url()}/tasks/${id}`)).json()) as {
      readonly name?: string
    }
    expect(answer.name, what).toBe(name)
  }
  await controller.member.end('SIGKILL')
  return 'served'
}

describe('a data folder of acknowledged tasks', () => {
  const kinds: readonly (readonly [string, number, () => Damage])[] = [
    ['bits', BITS, () => flipBit],
    ['logs', LOGS, () => loseLog],
    ['older', OLDER, () => setBack(killed.older)],
  ]

  it('is served unchanged without damage', async () => {
    const folder = newFolder()
    copyFolder(killed.folder, folder)
    expect(await start(folder)).toEqual({ served: true, missing: [] })
    expect(readFileSync(join(folder, `${STORE_FILE}.mark`), 'utf8')).toContain('"event":')
  })

  it.each(kinds)(
    'with damage of the kind "%s" (%i times) is refused, or is complete',
    async (kind, count, damage) => {
      const tally: Tally = { served: 0, refused: 0, lines: new Map(), failures: [] }
      const folder = newFolder()
      for (let number = FROM; number < count; number++)
        await damageAndStart(kind, number, damage(), tally, folder)
      console.log(
        `${kind}: ${tally.refused} starts refused, ${tally.served} served with everything ` +
          `acknowledged (seed ${SEED})`,
      )
      for (const [line, times] of tally.lines) console.log(`  ${times} × ${line}`)
      expect(tally.failures).toEqual([])
    },
    60_000 + Math.max(BITS, LOGS, OLDER) * 2_000,
  )

  it.each(kinds)(
    'with damage of the kind "%s" is refused by a real controller, or is complete',
    async (kind, count, damage) => {
      const results: string[] = []
      for (let i = 0; i < Math.min(PROCESSES, count); i++)
        results.push(await startProcess(kind, FROM + i, damage(), newFolder()))
      console.log(`${kind}, real processes: ${results.join(', ')}`)
    },
    60_000 + PROCESSES * 30_000,
  )
})
