/**
 * The state of the real store after a restore and after an accepted loss: the nodes know more than the store,
 * yet the store is not behind.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { restoreStore } from '../../controller/adapters/sqlite/restore.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { noAccessChanges, type StoredState, type TokenRecord } from '../../controller/ports/store.ts'
import { SetBackWorld } from '../support/set-back-world.ts'
import { aBatch } from '../support/store-builders.ts'

const NAMES = ['n1', 'n2', 'n3']

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-loss-'))
  path = join(folder, STORE_FILE)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function stored(options: { readonly acceptLoss?: string } = {}): Promise<StoredState> {
  const store = createSqliteStore({ path, busyTimeoutMs: 0, ...options })
  try {
    return await store.load()
  } finally {
    await store.close()
  }
}

/** Copies the changes that the world made durable since the last call to the real store. */
async function keep(world: SetBackWorld): Promise<void> {
  const { openTasks, nodes, marks } = await world.stored()
  const store = createSqliteStore({ path })
  await store.commit(aBatch({ tasks: openTasks, nodes, marks, events: world.events.splice(0) }))
  await store.close()
}

/** One task is in the file `older`; a second one is only in the store and on its node. */
async function lost(): Promise<{ readonly world: SetBackWorld; readonly older: string }> {
  const world = await SetBackWorld.of(NAMES)
  world.submit({ id: 'kept', vramMib: 1_000 })
  await world.pass(10_000)
  await keep(world)
  const older = join(folder, 'older.db')
  cpSync(path, older)
  world.submit({ id: 'lost', vramMib: 1_000 })
  await world.pass(10_000)
  await keep(world)
  return { world, older }
}

async function accept(older: string): Promise<StoredState> {
  cpSync(older, path)
  const line = await stored().then(
    () => 'it was not refused',
    (error: unknown) => String(error),
  )
  return stored({ acceptLoss: /--accept-loss (\S+)\.$/.exec(line)?.[1] ?? line })
}

async function restore(older: string): Promise<StoredState> {
  await restoreStore({ backup: older, path, isForced: true, at: new Date(0), busyTimeoutMs: 0 })
  return stored()
}

it.each([
  ['an accepted loss', accept, 'loss_accepted'],
  ['a restore', restore, 'restored'],
])(
  'After %s the nodes are not ahead, and recovery begins and ends by itself',
  { timeout: 300_000 },
  async (_, act, reason) => {
    const { world, older } = await lost()
    const state = await act(older)
    expect(state.openTasks.map(({ id }) => id)).toEqual(['kept'])
    await world.setBack(state)
    expect(world.controller.cluster.recovery).toMatchObject({ reason })
    await world.pass(13_000)
    expect(world.eventsOf('store_behind')).toEqual([])
    expect(world.eventsOf('recovery').map(({ data }) => data['alarm'])).toEqual(['RECOVERY', null])
    expect(world.controller.views.alarms().map(({ code }) => code)).toEqual(['QUARANTINE'])
    expect(['kept', 'lost'].map((id) => world.runsOn(id).length)).toEqual([1, 1])
    expect(world.task('kept')?.state).toBe('running')
    expect(world.runs.takeDoubles()).toEqual([])
  },
)

it(
  'The same older file with its old epoch is a store that went back to an earlier state',
  { timeout: 300_000 },
  async () => {
    const { world, older } = await lost()
    rmSync(`${path}.mark`)
    cpSync(older, path)
    const state = await stored({ acceptLoss: /--accept-loss (\S+)\.$/.exec(await refusal())?.[1] ?? '' })
    await world.setBack({ ...state, recovery: null, marks: { ...state.marks, epoch: 1 } })
    await world.pass(13_000)
    expect(world.eventsOf('store_behind').map(({ data }) => data['reason'])).toEqual(
      NAMES.map(() => 'missing_events'),
    )
  },
)

function refusal(): Promise<string> {
  return stored().then(
    () => 'it was not refused',
    (error: unknown) => String(error),
  )
}

it('A restored store has the tokens of the backup, and none of its browser sessions', async () => {
  const of = (id: string, more: Partial<TokenRecord> = {}): TokenRecord => ({
    ...{ id, name: 'ada', role: 'admin', secretHash: 'a'.repeat(64), createdAt: 1, createdBy: null },
    ...{ expiresAt: null, lastUsedAt: null, ...more },
  })
  const tokens = [of('abcdefghijkl'), of('session-0123456789ab', { session: 'settings' })]
  const store = createSqliteStore({ path })
  await store.commit(aBatch({ access: { ...noAccessChanges(), tokens } }))
  expect((await store.load()).tokens).toEqual(tokens)
  await store.close()
  const older = join(folder, 'older.db')
  cpSync(path, older)
  expect((await restore(older)).tokens).toEqual(tokens.slice(0, 1))
})
