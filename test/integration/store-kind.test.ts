/** The kind of a store is permanent: a demonstration is never served as a live cluster, nor the reverse. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { StoreKind } from '../../controller/model/store-kind.ts'
import type { DeviceKind } from '../../protocol/units.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { aBatch, aNode } from '../support/store-builders.ts'
import { demonstrationIn } from '../support/demonstration.ts'
import { serve } from '../support/served.ts'

const NATS = { CONTROLLER_NATS_URL: 'nats://127.0.0.1:1' }
const folder = mkdtempSync(join(tmpdir(), 'headroom-kind-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let number = 0
const newPath = (): string => join(folder, `${++number}`, 'headroom.db')

/** Null when the store opens as this kind, otherwise the line with the reason. */
async function opens(path: string, kind: StoreKind): Promise<string | null> {
  const store = createSqliteStore({ path, kind })
  const why = await store.load().then(
    () => null,
    (error: unknown) => (error as Error).message,
  )
  await store.close()
  return why
}

/** A store as written by versions without kinds, with nodes of these devices. */
async function storeWithoutKind(...devices: readonly DeviceKind[]): Promise<string> {
  const path = newPath()
  const store = createSqliteStore({ path })
  const nodes = devices.map((device, ordinal) =>
    aNode({ id: `5f0c9a52-1d3e-4b7a-9c11-00000000000${ordinal}`, ordinal, device }),
  )
  await store.commit(aBatch({ nodes }))
  await store.close()
  return path
}

describe('the kind of a store', () => {
  it('is permanent, and a refusal of another kind names both possible changes in one line', async () => {
    const path = newPath()
    expect(await opens(path, 'simulated')).toBeNull()
    expect(await opens(path, 'simulated')).toBeNull()
    expect(await opens(path, 'live')).toBe(
      `${path} holds a simulated cluster: unset CONTROLLER_NATS_URL to continue with it, or use another ` +
        'data directory (CONTROLLER_DATA_DIR) for a live cluster',
    )
    expect(await opens(path, 'trial')).toContain('holds a simulated cluster')
  })

  it('of a live cluster is neither simulated nor trial', async () => {
    const path = newPath()
    expect(await opens(path, 'live')).toBeNull()
    for (const kind of ['simulated', 'trial'] as const)
      expect(await opens(path, kind)).toContain('holds a live cluster: set CONTROLLER_NATS_URL')
  })

  it('is live if it was missing and any node was not simulated', async () => {
    const mixed = await storeWithoutKind('simulated', 'process')
    expect(await opens(mixed, 'simulated')).toContain('holds a live cluster')
    expect(await opens(mixed, 'live')).toBeNull()
    expect(await opens(mixed, 'trial')).toContain('holds a live cluster')
  })

  it('is simulated if it was missing and all nodes are simulated', async () => {
    const path = await storeWithoutKind('simulated')
    expect(await opens(path, 'live')).toContain('holds a simulated cluster')
    expect(await opens(path, 'simulated')).toBeNull()
  })

  it('is the kind that is served if it was missing without nodes', async () => {
    const path = await storeWithoutKind()
    expect(await opens(path, 'live')).toBeNull()
    expect(await opens(path, 'simulated')).toContain('holds a live cluster')
  })
})

describe('headroom serve', { timeout: 300_000 }, () => {
  it('refuses to manage GPU servers with the store of the demonstration, and the reverse', async () => {
    await demonstrationIn(join(folder, 'demo'))
    await expect(serve(join(folder, 'demo'), NATS)).rejects.toThrow(
      /holds a simulated cluster: unset CONTROLLER_NATS_URL[^\n]*\n?$/,
    )
    const live = await serve(join(folder, 'live'), NATS)
    live.process.kill('SIGTERM')
    await live.ended
    await expect(serve(join(folder, 'live'))).rejects.toThrow(
      /holds a live cluster: set CONTROLLER_NATS_URL[^\n]*\n?$/,
    )
  })
})

describe.skipIf(whyNoNatsServer() !== null)('a live controller', { timeout: 300_000 }, () => {
  it('refuses simulated servers, which print the reason', async () => {
    const cluster = await LiveCluster.start({ CONTROLLER_STORE_KIND: 'live' })
    onTestFinished(() => cluster.end())
    const fleet = await cluster.startFleet(
      readFileSync(join(import.meta.dirname, '../../scenarios/noswap-physical-only.scenario.yaml'), 'utf8'),
    )
    await until('the refusal is printed', () =>
      /: the controller refuses this server: its store is a live store, which accepts no simulated GPUs/.test(
        fleet.output,
      ),
    )
    expect(await cluster.nodes()).toEqual([])
  })
})
