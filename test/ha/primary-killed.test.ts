/**
 * PostgreSQL's primary is lost with its host. A synchronous standby that is promoted has everything that was
 * acknowledged. An asynchronous one may lack commits: no controller continues from it.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { figure } from '../durability/controller-on.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { LoadedControllers } from './loaded-controllers.ts'
import { quantile, spread } from './spread.ts'

const KILLS = figure('HA_PRIMARY_KILLS', 1)
const FIRST_WITHIN_MS = figure('HA_FIRST_201_WITHIN_MS', 60_000)
const REFUSAL = /^headroom: \S+ went back to an earlier state: .*accept-loss/gm

describe.skipIf(whyNoPostgres() !== null)('controllers on PostgreSQL with a standby', () => {
  let primary: PostgresServer
  let standby: PostgresServer
  let loaded: LoadedControllers
  beforeEach(async () => {
    primary = await PostgresServer.start()
    standby = await primary.standby()
    const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`).join()
    loaded = await LoadedControllers.start(`postgres://headroom@${hosts}/postgres`, 'a', 'b')
  })
  afterEach(async () => {
    await loaded.end()
    await Promise.all([primary.remove(), standby.remove()])
  })

  it('lose nothing when a synchronous standby is promoted', async () => {
    let isFirst = true
    const times = await loaded.repeated(KILLS, async () => {
      if (!isFirst) standby = await primary.standby(standby.port)
      isFirst = false
      await primary.setSynchronous(true)
      await loaded.load.nextAcknowledgement()
      await primary.kill()
      await standby.promote()
      await primary.remove()
      ;[primary, standby] = [standby, primary]
    })
    loaded.report('the primary was killed and its synchronous standby promoted', times)
    expect(quantile(times, 1)).toBeLessThan(FIRST_WITHIN_MS)
  })

  it('refuse an asynchronous standby that lacks commits, and continue with the primary', async () => {
    const refused: number[] = []
    const times = await loaded.repeated(KILLS, async () => {
      if (refused.length > 0) standby = await primary.standby(standby.port)
      await standby.stopStreaming()
      const [has] = await standby.query<{ commits: string }>('select commits from headroom.history')
      // What a standby has not followed yet, only the former leader knows.
      await expect.poll(() => loaded.known, { interval: 5 }).toBeGreaterThan(Number(has?.commits))
      await primary.kill()
      const outputs = loaded.running.map(({ controller }) => controller.member.output.length)
      await standby.promote()
      const from = performance.now()
      // Nothing was acknowledged in between.
      const { acknowledged } = loaded.load
      for (const [i, { controller }] of loaded.running.entries())
        await expect.poll(() => controller.member.output.slice(outputs[i])).toMatch(REFUSAL)
      refused.push(performance.now() - from)
      expect(loaded.load.acknowledged).toBe(acknowledged)
      await standby.remove()
      await primary.restart()
    })
    console.log(
      `${refused.length} times an asynchronous standby that lacks commits was refused by both controllers, ` +
        `after ${spread(refused.sort((a, b) => a - b))}`,
    )
    loaded.report('the primary that was killed was started again', times)
  })
})
