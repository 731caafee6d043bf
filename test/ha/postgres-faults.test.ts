/**
 * One controller on PostgreSQL under load, while the server is killed, stopped, restarted and cut off:
 * nothing acknowledged is lost, a repeated request gives the one true answer, and no hand is needed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { controllerOn, figure, newFolder } from '../durability/controller-on.ts'
import { CommitCutter } from '../support/commit-cutter.ts'
import { freePort } from '../support/free-port.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { Load, Supervisor } from './load.ts'

const FAULTS = figure('HA_FAULTS', 1)
const CUTS = figure('HA_CUTS', 2)
/** `make test-ha` promises 5 s on an idle machine. */
const FIRST_WITHIN_MS = figure('HA_FIRST_201_WITHIN_MS', 60_000)
const FROZEN_MS = figure('HA_FROZEN_MS', 5_000)

describe.skipIf(whyNoPostgres() !== null)('a controller on PostgreSQL', () => {
  let server: PostgresServer
  let cutter: CommitCutter
  let load: Load
  let supervisor: Supervisor
  beforeAll(async () => {
    server = await PostgresServer.start()
    cutter = await CommitCutter.start(server.port)
    const port = await freePort()
    const controller = controllerOn(newFolder(), {
      CONTROLLER_STORE_URL: `postgres://headroom@127.0.0.1:${cutter.port}/postgres`,
      CONTROLLER_HTTP_PORT: String(port),
    })
    supervisor = new Supervisor(controller, `http://127.0.0.1:${port}`)
    await supervisor.begin()
    load = new Load([`http://127.0.0.1:${port}`])
    load.begin()
    await load.nextAcknowledgement()
  })
  afterAll(async () => {
    await load.end()
    await supervisor.end()
    await cutter.end()
    await server.remove()
  })

  /** @param fault resolves when the server can answer again. @returns times until the first 201 after it */
  async function repeated(count: number, fault: () => Promise<void>): Promise<readonly number[]> {
    const times: number[] = []
    for (let i = 0; i < count; i++) {
      await load.nextAcknowledgement()
      await fault()
      const from = performance.now()
      await load.nextAcknowledgement()
      times.push(performance.now() - from)
    }
    await load.check()
    return times.sort((a, b) => a - b)
  }

  function report(what: string, times: readonly number[]): void {
    const at = (share: number) => Math.round(times[Math.ceil(times.length * share) - 1] ?? 0)
    console.log(
      `${times.length} times ${what}: first 201 after median ${at(0.5)} ms, worst ${at(1)} ms; ` +
        `${load.acknowledged} tasks acknowledged, none lost; ${load.repeated} unknown answers repeated`,
    )
    expect(at(1)).toBeLessThan(FIRST_WITHIN_MS)
  }

  it.each([
    ['shut down at once (SIGQUIT) and restarted', 'SIGQUIT'],
    ['restarted (SIGINT)', 'SIGINT'],
    ['left without a postmaster (SIGKILL) and restarted', 'SIGKILL'],
  ] as const)('loses nothing when PostgreSQL is %s', async (what, signal) => {
    const times = await repeated(FAULTS, async () => {
      await server.stop(signal)
      await server.restart()
    })
    report(`PostgreSQL was ${what}`, times)
  })

  it('loses nothing when PostgreSQL is frozen', async () => {
    const times = await repeated(FAULTS, async () => {
      const pids = server.pids()
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      await delay(FROZEN_MS)
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    })
    report(`PostgreSQL was frozen for ${FROZEN_MS} ms`, times)
  })

  it('gives the correct answer after the connection was cut at a commit', async () => {
    let cut = 0
    const times = await repeated(CUTS, async () => {
      // In turn before the server has the commit, and after it, before its answer.
      await cutter.cut(cut++ % 2 === 0 ? 'before' : 'after')
    })
    report('the connection was cut at a commit', times)
  })
})
