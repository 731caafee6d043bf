/**
 * Every store of an earlier version is upgraded with all its rows. The fixtures were written by those
 * versions; between them the numbered steps lead to every earlier schema.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MAX_UPGRADE_COPIES } from '../../controller/adapters/sqlite/backup.ts'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { migrate, MIGRATIONS, SCHEMA_VERSION } from '../../controller/adapters/sqlite/migrations.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { createController } from '../../controller/controller.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { finishedQuery } from '../support/store-builders.ts'

const FIXTURES = join(import.meta.dirname, '../fixtures')
const WRITTEN = readdirSync(FIXTURES)
  .flatMap((name) => /^store-schema-(\d+)\.sql$/.exec(name)?.[1] ?? [])
  .map(Number)
  .sort((a, b) => a - b)
/** The upgrade of the first takes every step between the others. */
const EARLIER = [...new Set([...WRITTEN, SCHEMA_VERSION - 1])]
const folder = temporaryFolder()

/** A store of that schema, made from the nearest earlier fixture. */
async function storeOf(schema: number, name: string): Promise<string> {
  const path = join(folder, `${name}.db`)
  const fixture = WRITTEN.findLast((version) => version <= schema) as number
  const db = new Database(path)
  db.exec(readFileSync(join(FIXTURES, `store-schema-${fixture}.sql`), 'utf8'))
  await migrate(kyselyOf(db), path, 0, MIGRATIONS.slice(0, schema))
  db.close()
  return path
}

function rowsOf(path: string): Readonly<Record<string, number>> {
  const db = new Database(path, { readonly: true })
  const counts = db
    .prepare<[], { state: string; count: number }>(
      'select state, count(*) as count from tasks group by state',
    )
    .all()
  db.close()
  return Object.fromEntries(counts.map(({ state, count }) => [state, count]))
}

async function upgraded(path: string): Promise<readonly string[]> {
  const lines: string[] = []
  const store = createSqliteStore({ path, log: (line) => lines.push(line) })
  await store.load().finally(() => store.close())
  return lines
}

describe.each(EARLIER)('a store of schema %i', { timeout: 300_000 }, (schema) => {
  it('is copied and upgraded, and a controller continues with all its content', async () => {
    const path = await storeOf(schema, `upgrade-${schema}`)
    const before = rowsOf(path)
    expect((await verifyStore(path)).problems).toEqual([])
    const copy = `${path}.before-schema-${schema + 1}`
    expect(await upgraded(path)).toEqual([
      `${path}: schema ${schema} → ${SCHEMA_VERSION}`,
      `${copy} is a copy of the previous store`,
    ])
    expect(await verifyStore(copy)).toMatchObject({ schema, problems: [] })
    expect(rowsOf(copy)).toEqual(before)

    const clock = new VirtualClock(1_800_000_000_000)
    const bus = plainBus(clock)
    const store = createSqliteStore({ path })
    const controller = createController({ clock, bus, store, random: createSeededRandom('upgrade') })
    await controller.start()
    const { views } = controller
    const { pending, running, completed } = views.counts()
    expect({ pending, running, completed }).toEqual(before)
    expect(views.config()).toMatchObject({
      source: 'persisted',
      fields: { default_vram_overcommit_percent: 40 },
    })
    expect([...views.groups()]).toMatchObject([{ id: 'a100', nodeIds: [] }])
    const lease = [...views.openTasks()].find(({ spec }) => spec.name === 'fixture lease')
    expect(lease).toMatchObject({ spec: { labels: { team: 'vision' }, command: null } })
    const finished = await views.stored.finishedTasks(finishedQuery({ states: ['completed'] }))
    expect(finished).toHaveLength(completed)
    await controller.stop()
    expect(await verifyStore(path)).toMatchObject({ schema: SCHEMA_VERSION, problems: [] })
  })
})

describe('an upgrade of the store', () => {
  it('does not begin if the copy fails, and the store stays unchanged', async () => {
    const path = await storeOf(1, 'no-copy')
    mkdirSync(`${path}.before-schema-2`)
    await expect(upgraded(path)).rejects.toThrow(/no-copy\.db/)
    expect((await verifyStore(path)).schema).toBe(1)
  })

  it('can be undone: the copy is the store of the earlier version', async () => {
    const path = await storeOf(1, 'back')
    await upgraded(path)
    copyFileSync(`${path}.before-schema-2`, path)
    expect((await verifyStore(path)).schema).toBe(1)
    expect(await upgraded(path)).toContain(`${path}: schema 1 → ${SCHEMA_VERSION}`)
  })

  it('keeps a few of the newest copies', async () => {
    const path = await storeOf(1, 'copies')
    for (let i = 0; i < MAX_UPGRADE_COPIES + 1; i++) {
      writeFileSync(`${path}.before-schema-${100 + i}`, '')
      utimesSync(`${path}.before-schema-${100 + i}`, 1_000 + i, 1_000 + i)
    }
    await upgraded(path)
    const left = readdirSync(folder).filter((name) => name.startsWith('copies.db.before-schema-'))
    expect(left).toHaveLength(MAX_UPGRADE_COPIES)
    expect(existsSync(`${path}.before-schema-2`)).toBe(true)
    expect(existsSync(`${path}.before-schema-100`)).toBe(false)
  })

  it('keeps out a controller that knows no images: it would run their tasks on the host', async () => {
    const path = join(folder, 'images.db')
    await upgraded(path)
    const db = new Database(path)
    const before = MIGRATIONS.findIndex(({ name }) => name === 'tasks know their image')
    expect(before).toBeGreaterThan(0)
    await expect(migrate(kyselyOf(db), path, 0, MIGRATIONS.slice(0, before))).rejects.toThrow(
      /written by a newer Headroom/,
    )
    db.close()
  })

  it('makes no copy of a store that is new or up to date', async () => {
    const path = join(folder, 'fresh.db')
    expect(await upgraded(path)).toEqual([`made ${path}`, `${path}: schema 0 → ${SCHEMA_VERSION}`])
    expect(await upgraded(path)).toEqual([])
    expect(readdirSync(folder).filter((name) => name.startsWith('fresh.db.before'))).toEqual([])
  })
})
