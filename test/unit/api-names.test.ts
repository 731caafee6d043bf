/** The names by which callers may refer to nodes, groups and tasks. */
import { beforeEach, describe, expect, it } from 'vitest'
import { apiClient } from '../support/api-client.ts'
import { realEngine } from '../support/real-engine.ts'
import { NODE_ID } from '../support/api-world.ts'

const OTHER_ID = '6a1d9a52-1d3e-4b7a-9c11-0000000000aa'
const TWIN_ID = '7b2e9a52-1d3e-4b7a-9c11-0000000000aa'
const UNKNOWN_ID = '00000000-0000-4000-8000-00000000000f'

/** Node node-01, two nodes named node-aa; group vision; task train, and two tasks named eval. */
async function named() {
  const world = await realEngine()
  for (const id of [NODE_ID, OTHER_ID, TWIN_ID]) await world.addNode({ id, gpus: 1, physicalMib: 24_576 })
  const api = await apiClient(world)
  await api.send('POST', '/groups', { id: 'vision', node_ids: [NODE_ID] })
  const submit = async (name: string, groups: string[] = []) =>
    String((await api.send('POST', '/tasks', { name, vram_mib: 1000, groups })).body.id)
  const train = await submit('train', ['vision'])
  const evals = [await submit('eval'), await submit('eval')]
  return { api, train, evals, submit }
}

let world: Awaited<ReturnType<typeof named>>
beforeEach(async () => {
  world = await named()
})

describe('a node id', () => {
  it('is accepted in upper case in every path', async () => {
    const { api } = world
    const upper = NODE_ID.toUpperCase()
    expect((await api.send('GET', `/nodes/${upper}`)).body.node_id).toBe(NODE_ID)
    expect((await api.send('PUT', `/nodes/${upper}/config`, { overcommit_vram_percent: 20 })).status).toBe(
      200,
    )
    expect((await api.send('GET', `/nodes/${NODE_ID}`)).body.overcommit_vram_percent).toBe(20)
    expect((await api.send('POST', `/nodes/${upper}/cordon`)).body.cordoned).toBe(true)
    expect((await api.send('POST', `/nodes/${upper}/uncordon`)).status).toBe(200)
    expect((await api.send('POST', `/nodes/${upper}/drain`)).status).toBe(202)
    expect((await api.send('PUT', `/groups/vision/nodes/${OTHER_ID.toUpperCase()}`)).body.node_ids).toEqual([
      NODE_ID,
      OTHER_ID,
    ])
    expect((await api.send('DELETE', `/groups/vision/nodes/${upper}`)).status).toBe(204)
    expect((await api.send('GET', '/groups/vision')).body.node_ids).toEqual([OTHER_ID])
    expect((await api.send('DELETE', `/nodes/${upper}`)).body.code).toBe('conflict')
  })

  it('is accepted in upper case in the members of a group, and stored in lower case', async () => {
    const { api } = world
    const put = await api.send('PUT', '/groups/vision', {
      node_ids: [OTHER_ID.toUpperCase(), NODE_ID, NODE_ID.toUpperCase()],
    })
    expect(put.body.node_ids).toEqual([NODE_ID, OTHER_ID])
  })

  it('is accepted in upper case in filters and in q', async () => {
    const { api } = world
    const upper = NODE_ID.toUpperCase()
    expect((await api.send('GET', `/tasks?node=${upper}`)).status).toBe(200)
    expect((await api.send('GET', `/nodes?q=${upper}`)).body.total).toBe(1)
    const events = await api.send('GET', `/events?node=${upper}&kind=node_registered`)
    expect(events.body.items).toMatchObject([{ node_id: NODE_ID }])
  })
})

describe('a filter', () => {
  it('accepts the name of a node', async () => {
    const { api } = world
    const events = await api.send('GET', '/events?node=node-01&kind=node_registered')
    expect(events.body.items).toMatchObject([{ node_id: NODE_ID }])
    for (const path of ['/tasks', '/events', '/decisions'])
      expect((await api.send('GET', `${path}?node=node-01`)).status, path).toBe(200)
  })

  it('accepts the name of a task', async () => {
    const { api, train } = world
    const { items } = (await api.send('GET', '/events?task=train')).body as unknown as {
      items: readonly { task_id: string }[]
    }
    expect(items.length).toBeGreaterThan(0)
    expect(items.every(({ task_id: id }) => id === train)).toBe(true)
    expect((await api.send('GET', '/decisions?task=train')).status).toBe(200)
  })

  it('accepts the name of a task that has ended', async () => {
    const { api, train } = world
    expect((await api.send('DELETE', `/tasks/${train}?now=true`)).status).toBe(202)
    expect((await api.send('GET', '/events?task=train&kind=task_submitted')).body.items).toMatchObject([
      { task_id: train },
    ])
  })

  it.each([
    ['/tasks?node=node-1', 'node', '"node-01", "node-aa"'],
    ['/events?node=nodeaa', 'node', '"node-01", "node-aa"'],
    ['/events/stream?node=nope', 'node', '"node-01", "node-aa"'],
    ['/decisions?node=nope', 'node', '"node-01", "node-aa"'],
    ['/nodes?group=visoin', 'group', '"vision"'],
    ['/tasks?group=visoin', 'group', '"vision"'],
    ['/events?task=trai', 'task', '"train"'],
    ['/events/stream?task=va', 'task', '"eval"'],
    ['/decisions?task=nothing', 'task', 'no similar name exists'],
    ['/series?scope=node:node-1', 'scope', '"node-01", "node-aa"'],
  ])("%s is answered with 400, the parameter's name and candidates", async (path, parameter, candidates) => {
    const answer = await world.api.send('GET', path)
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ pointer: `/${parameter}` }] },
    })
    expect(answer.body.detail).toContain(candidates)
  })

  it.each(['/tasks?node=node-aa', '/events?node=node-aa', '/decisions?node=node-aa'])(
    '%s is answered with 400 and the ids of both nodes of that name',
    async (path) => {
      const answer = await world.api.send('GET', path)
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ pointer: '/node' }] } })
      expect(answer.body.detail).toContain(
        `2 nodes are named "node-aa"; send the ID of one: ${OTHER_ID}, ${TWIN_ID}`,
      )
    },
  )

  it('with a name that two tasks have is answered with 400 and their ids', async () => {
    const { api, evals } = world
    const answer = await api.send('GET', '/events?task=eval')
    expect(answer.status).toBe(400)
    for (const id of evals) expect(answer.body.detail).toContain(id)
  })

  it('with the id of a node or task that is no longer known finds nothing, without an error', async () => {
    const { api } = world
    for (const path of [
      `/tasks?node=${UNKNOWN_ID}`,
      `/events?node=${UNKNOWN_ID}`,
      `/events?task=${UNKNOWN_ID}`,
    ]) {
      expect(await api.send('GET', path), path).toMatchObject({ status: 200, body: { items: [] } })
    }
  })

  it('with a group that does not exist finds the tasks that name the group', async () => {
    const { api, submit } = world
    const id = await submit('early', ['later'])
    expect((await api.send('GET', '/tasks?group=later')).body.items).toMatchObject([{ id }])
  })
})
