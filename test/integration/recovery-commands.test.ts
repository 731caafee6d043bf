/**
 * `GET /recovery`, `/attempts` and their commands, with production controllers and servers whose store was
 * set back.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { AttemptListBody, RecoveryBody } from '../../controller/api/tasks/attempt-schema.ts'
import type { EventPage } from '../../controller/api/observe/event-schema.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { headroom, type Ended } from '../support/headroom-command.ts'
import { ServedSetBack } from '../support/served-set-back.ts'
import type { SetBackWorld } from '../support/set-back-world.ts'

const LATER = ['later', 'other'].map((id) => ({ id, vramMib: 1_000 }))

describe('the recovery commands after a restore', { timeout: 300_000 }, () => {
  let served: ServedSetBack
  let world: SetBackWorld
  let url = ''

  /** The restored backup contains only `before`; `later` and `other` run unknown to it. */
  const open = async (silent: readonly string[] = []): Promise<void> => {
    served = await ServedSetBack.restored({ silent, later: LATER })
    ;({ world, url } = served)
  }
  afterEach(() => served.end())
  const run = (...args: readonly string[]): Promise<Ended> =>
    headroom(args, { env: { VENDOR_CONTROLLER_URL: url } })
  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${url}/api/v1${path}`)).json()) as T
  const nodeOf = (id: string): string => world.runsOn(id)[0] ?? ''

  it('list attempts unknown to the store, with the records of their servers', async () => {
    await open()
    const { items } = await get<AttemptListBody>('/attempts')
    expect(
      items.map(({ task_id, attempt, node_name, vram_mib, stopped_by, record }) => ({
        task_id,
        attempt,
        node_name,
        vram_mib,
        stopped_by,
        record,
      })),
    ).toEqual(
      expect.arrayContaining(
        ['later', 'other'].map((id) => ({
          ...{ task_id: id, attempt: 1, node_name: nodeOf(id), vram_mib: 1_000, stopped_by: null },
          record: { name: id, owner: null, command: ['simulated'] },
        })),
      ),
    )
    const listed = await run('attempts', 'list')
    expect(listed.code).toBe(0)
    expect(listed.stdout).toMatch(new RegExp(`^later/1 +${nodeOf('later')} .* later`, 'm'))
    const status = JSON.parse((await run('recovery', 'status', '-o', 'json')).stdout) as RecoveryBody
    expect(status.quarantined_attempts).toBe(2)
  })

  it('adopt one attempt as a task and stop the other, and neither runs twice', async () => {
    await open()
    expect(await run('attempts', 'adopt', 'later/1', '--owner', 'ada', '--name', 'trained')).toMatchObject({
      code: 0,
      stdout: 'later/1: adopted as a task of ada\n',
    })
    expect(await get('/tasks/later')).toMatchObject({
      state: 'running',
      attempt: 1,
      owner: 'ada',
      name: 'trained',
    })
    const stopping = nodeOf('other')
    expect(await run('attempts', 'stop', 'other/1')).toMatchObject({
      code: 0,
      stdout: `other/1: stop requested on ${stopping}\n`,
    })
    while (world.runsOn('other').length > 0) await wait(10)
    expect(world.runsOn('later')).toHaveLength(1)
    expect(world.runs.takeDoubles()).toEqual([])
    while ((await get<AttemptListBody>('/attempts')).items.length > 0) await wait(10)
    expect((await run('attempts', 'adopt', 'other/1', '--owner', 'ada')).stderr).toMatch(/other\/1/)
    expect(await run('attempts', 'stop', 'other')).toMatchObject({
      code: 2,
      stderr: 'error: "other" must be TASK/ATTEMPT\n',
    })
  })

  it('name the awaited nodes in recovery status, and end the recovery', async () => {
    await open(['n3'])
    const status = await run('recovery', 'status')
    expect(status.stdout).toMatch(/^placements +paused: RECOVERY$/m)
    expect(status.stdout).toMatch(/^recovery +restored at .*, waiting for 1 node$/m)
    expect(await get('/recovery')).toMatchObject({
      placements_paused: 'RECOVERY',
      recovery: { nodes_awaited: [nodeIdFromName('n3')] },
    })
    expect(await run('recovery', 'finish')).toMatchObject({ code: 0 })
    expect(await get('/recovery')).toMatchObject({ recovery: null })
    expect((await run('recovery', 'status')).stdout).toMatch(/^recovery +none$/m)
  })

  it('name nodes that are ahead of a store that was set back without a restore', async () => {
    await open()
    await served.loseLatestEvents()
    const { placements_paused, store, nodes_ahead } = await get<RecoveryBody>('/recovery')
    expect([placements_paused, nodes_ahead.length > 0]).toEqual(['STORE_BEHIND', true])
    const { epoch, process: controller } = world.controller.status
    expect(store).toMatchObject({ epoch, controller })
    expect(store.event_seq).toBe((await get<EventPage>('/events?limit=1')).last_seq)
    const { stdout } = await run('recovery', 'status')
    expect(stdout).toMatch(/^ahead +\d of 3 nodes that have reported$/m)
    expect(stdout).toMatch(new RegExp(`^store +epoch ${epoch}, event \\d+$`, 'm'))
  })
})
