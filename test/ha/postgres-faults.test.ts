/**
 * One controller on PostgreSQL under load, while the server is killed, stopped, restarted and cut off, and
 * while its disk is full: nothing acknowledged is lost, a repeated request gives the one true answer, and no
 * hand is needed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { figure, newFolder } from '../durability/controller-on.ts'
import { CommitCutter } from '../support/commit-cutter.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { fillDisk, freeDisk, mountSmallDisk, unmountSmallDisk } from '../support/small-disk.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { LoadedControllers } from './loaded-controllers.ts'
import { quantile } from './spread.ts'

const FAULTS = figure('HA_FAULTS', 1)
const CUTS = figure('HA_CUTS', 2)
/** `make test-ha` promises 5 s on an idle machine. */
const FIRST_WITHIN_MS = figure('HA_FIRST_201_WITHIN_MS', 60_000)
const FROZEN_MS = figure('HA_FROZEN_MS', 5_000)
/** Longer than a lease: the controller gives up its commit, and waits for the server. */
const BLOCKED_MS = figure('HA_BLOCKED_MS', 5_000)
/** A test that is over would still disturb the next one. */
const TIMEOUT_MS = 300_000 + FAULTS * (FROZEN_MS + FIRST_WITHIN_MS) + CUTS * FIRST_WITHIN_MS
/** An empty server needs 40 MiB, and its log up to 80 MiB more. */
const DISK_MIB = 256

describe.skipIf(whyNoPostgres() !== null)('a controller on PostgreSQL', { timeout: TIMEOUT_MS }, () => {
  let server: PostgresServer
  let cutter: CommitCutter
  let proxy: TcpProxy
  let loaded: LoadedControllers
  beforeAll(async () => {
    server = await PostgresServer.start()
    cutter = await CommitCutter.start(server.port)
    proxy = await TcpProxy.start(cutter.port)
    loaded = await LoadedControllers.start(server.urlAt(proxy.port), 'a')
  })
  afterAll(async () => {
    await loaded.end()
    await proxy.end()
    await cutter.end()
    await server.remove()
  })

  async function survives(what: string, count: number, fault: () => Promise<void>): Promise<void> {
    const times = await loaded.repeated(count, fault)
    loaded.report(what, times)
    expect(quantile(times, 1)).toBeLessThan(FIRST_WITHIN_MS)
  }

  it.each([
    ['shut down at once (SIGQUIT) and restarted', 'SIGQUIT'],
    ['restarted (SIGINT)', 'SIGINT'],
    ['left without a postmaster (SIGKILL) and restarted', 'SIGKILL'],
  ] as const)('loses nothing when PostgreSQL is %s', async (what, signal) => {
    await survives(`PostgreSQL was ${what}`, FAULTS, async () => {
      await server.stop(signal)
      await server.restart()
    })
  })

  it('loses nothing when PostgreSQL is frozen', async () => {
    await survives(`PostgreSQL was frozen for ${FROZEN_MS} ms`, FAULTS, () => server.freeze(FROZEN_MS))
  })

  it.each(['to', 'from'] as const)(
    'loses nothing when nothing passes in one direction: %s the server',
    async (direction) => {
      await survives(`nothing passed ${direction} the server for ${BLOCKED_MS} ms`, FAULTS, async () => {
        const { acknowledged } = loaded.load
        proxy.cut([direction])
        await delay(BLOCKED_MS)
        // At most those whose commit was answered before.
        expect(loaded.load.acknowledged - acknowledged).toBeLessThanOrEqual(loaded.load.clients)
        proxy.heal()
      })
    },
  )

  it('gives the correct answer after the connection was cut at a commit', async () => {
    let cut = 0
    await survives('the connection was cut at a commit', CUTS, async () => {
      // In turn before the server has the commit, and after it, before its answer.
      await cutter.cut(cut++ % 2 === 0 ? 'before' : 'after')
    })
  })
})

describe.skipIf(whyNoPostgres() !== null)(
  'a controller on PostgreSQL with a small disk',
  { timeout: TIMEOUT_MS },
  () => {
    const disk = newFolder()
    afterAll(() => unmountSmallDisk(disk))

    it('loses nothing when the disk of PostgreSQL is full', async (context) => {
      const why = mountSmallDisk(disk, DISK_MIB)
      if (why !== null) {
        console.log(`skipped: ${why}`)
        return context.skip(why)
      }
      const server = await PostgresServer.start({ parent: disk, settings: ['max_wal_size=64MB'] })
      const loaded = await LoadedControllers.start(server.url, 'a')
      let ended = 0
      const times = await loaded.repeated(FAULTS, async () => {
        const starts = () => loaded.running[0]?.controller.member.starts ?? 0
        const before = starts()
        fillDisk(disk)
        await expect.poll(starts).toBeGreaterThan(before)
        freeDisk(disk)
        // Without space for its log, the server ends: its own supervisor starts it again.
        if (server.isRunning) return
        ended += 1
        await server.restart()
      })
      loaded.report(`the disk of PostgreSQL was full (${ended} times the server ended)`, times)
      expect(quantile(times, 1)).toBeLessThan(FIRST_WITHIN_MS)
      await loaded.end()
      await server.remove()
    })
  },
)
