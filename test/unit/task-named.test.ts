import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { taskNamed } from '../../cli/command/task-named.ts'
import { CommandFailure, EXIT_NOT_FOUND } from '../../services/exit-codes.ts'
import { createClient } from '../../clients/typescript/client.ts'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'

const REQUEST = {
  vramMib: 1000,
  gpuCount: 1,
  gpuMode: 'shared',
  priority: 2,
  noswap: 0,
  groups: [],
  labels: {},
  command: null,
  maxRuntimeSeconds: null,
  onNodeLoss: 'wait',
} as const

const AT_HOME = 'abcd0001-0000-4000-8000-000000000001'
const ALIKE = 'abcd0002-0000-4000-8000-000000000002'
const OF_BOB = 'bbbb0003-0000-4000-8000-000000000003'
const ENDED = 'cccc0004-0000-4000-8000-000000000004'
const ENDED_BEFORE = 'ffff0008-0000-4000-8000-000000000008'
const TWIN = 'dddd0005-0000-4000-8000-000000000005'
const OTHER_TWIN = 'dddd0006-0000-4000-8000-000000000006'
const CONFUSING = 'eeee0007-0000-4000-8000-000000000007'

describe('the task that a command names', () => {
  let world: AccessWorld
  let url: string
  let ann: string
  let bob: string

  beforeAll(async () => {
    world = await accessWorld()
    ann = await world.token('submitter', { name: 'ann' })
    bob = await world.token('submitter', { name: 'bob' })
    url = await world.app.listen({ host: '127.0.0.1', port: 0 })
    const submit = (id: string, name: string, owner = 'ann'): Promise<unknown> =>
      new Promise((resolve) => {
        world.engine.commands.submitTask({ ...REQUEST, id, name, owner }, resolve)
      })
    await submit(AT_HOME, 'train')
    await submit(ALIKE, 'train-again')
    await submit(OF_BOB, 'train', 'bob')
    await submit(OF_BOB.replace('bbbb0003', 'bbbb1003'), 'serve', 'bob')
    for (const id of [ENDED_BEFORE, ENDED]) {
      await submit(id, 'done')
      await createClient({ url, token: ann }).tasks.cancel(id)
    }
    await submit(TWIN, 'twin')
    await submit(OTHER_TWIN, 'twin')
    await submit(CONFUSING, 'abcd0001')
  })
  afterAll(() => world.app.close())

  const named = (text: string, token = ann): Promise<string> => taskNamed(createClient({ url, token }), text)

  it('is found by its id, four characters of it, or the name of one open task of its owner', async () => {
    expect(await named(AT_HOME.toUpperCase())).toBe(AT_HOME)
    expect(await named('cccc')).toBe(ENDED)
    expect(await named('abcd0002')).toBe(ALIKE)
    expect(await named('train')).toBe(AT_HOME)
    expect(await named('train', bob)).toBe(OF_BOB)
    expect(await named('train-again', ann)).toBe(ALIKE)
  })

  it('does not exist if fewer than four characters or only a part of a name match', async () => {
    for (const text of ['ccc', 'nothing'])
      await expect(named(text)).rejects.toThrow(
        new CommandFailure(`Task "${text}" not found.`, EXIT_NOT_FOUND),
      )
    await expect(named('trai')).rejects.toThrow(
      /^Task "trai" not found\. Candidates: bbbb0003.*abcd0002.*abcd0001/,
    )
    await expect(named('')).rejects.toThrow('empty')
  })

  it('is the one of its owner that was submitted last, if all of the name have ended', async () => {
    expect(await named('done')).toBe(ENDED)
    await expect(named('done', bob)).rejects.toThrow(`(done, cancelled, owner ann)`)
  })

  it('of another owner is a candidate only', async () => {
    await expect(named('serve')).rejects.toThrow(
      new RegExp(
        /^Task "serve" not found: you have no task .* Candidates: bbbb1003-\S+ \(serve, /.source +
          /pending, owner bob\)\.$/.source,
      ),
    )
  })

  it('is refused if two tasks match, by id, by name, or one by each', async () => {
    await expect(named('abcd')).rejects.toThrow(
      `2 tasks match "abcd": use the task ID. Candidates: ${ALIKE} (train-again, pending, owner ann), ` +
        `${AT_HOME}`,
    )
    await expect(named('twin')).rejects.toThrow(
      /^2 tasks match "twin": use the task ID\. .*dddd0006.*dddd0005/,
    )
    await expect(named('abcd0001')).rejects.toThrow(/^2 tasks match "abcd0001": .*abcd0001-.*eeee0007-/)
  })
})
