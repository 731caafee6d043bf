import { expect, it } from 'vitest'
import { checkBroker, taskIdentityOf, trialIdentity } from '../../services/gpu-server/task-identity.ts'
import { attemptsWithIds } from '../../gpu-server/devices/task-identity.ts'
import { idRange } from '../../cli/command/option-values.ts'

const IDS = { from: 200_000, to: 201_023 }
const ORDINARY = 1_000

it('A root server gives each attempt a separate user unless one user, or root, is configured', () => {
  expect(taskIdentityOf({ allowExec: true }, 0)).toEqual({ kind: 'uid_per_attempt', ids: IDS })
  expect(taskIdentityOf({ taskUids: { from: 5_000_000, to: 5_000_009 } }, 0)).toMatchObject({
    ids: { from: 5_000_000 },
  })
  expect(taskIdentityOf({ taskUser: '65534:65534' }, 0)).toEqual({
    kind: 'task_user',
    uid: 65_534,
    gid: 65_534,
    home: '/',
    ids: IDS,
  })
  for (const taskUser of ['root', '0:0']) expect(taskIdentityOf({ taskUser }, 0)).toEqual({ kind: 'root' })
})

it('A server without root shares its user with its tasks, which needs an option for commands', () => {
  expect(() => taskIdentityOf({ allowExec: true }, ORDINARY)).toThrow(
    /run it as root .* or accept this with --tasks-as-me/,
  )
  for (const options of [{ allowExec: true, tasksAsMe: true }, {}]) {
    expect(taskIdentityOf(options, ORDINARY)).toEqual({ kind: 'server_user' })
  }
})

it.each([
  [{ tasksAsMe: true }, 0, /as root, use --task-user root/],
  [{ taskUser: 'root', taskUids: IDS }, 0, /cannot be combined/],
  [{ taskUser: 'no-such-user' }, 0, /user "no-such-user" not found/],
  [{ taskUser: 'nobody' }, ORDINARY, /--task-user: only a server that runs as root/],
  [{ taskUids: IDS }, ORDINARY, /--task-uids: only a server that runs as root/],
  [
    { taskUids: { from: 60_000, to: 70_000 } },
    0,
    /65534 is user nobody of this host; choose a range without users/,
  ],
])('%j of user %i is refused', (options, uid, why) => {
  expect(() => taskIdentityOf(options, uid)).toThrow(why)
})

it('Tasks with the user of the server may use a broker without keys only on loopback', () => {
  const settings = (url: string, kind: 'none' | 'token') => {
    const auth = kind === 'none' ? { kind } : { kind, token: 'x' }
    return { urls: [url], auth, tls: null, inboxPrefix: '_INBOX' } as const
  }
  const shared = { kind: 'server_user' } as const
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '[::1]'])
    checkBroker(shared, settings(`nats://${host}:4222`, 'none'))
  for (const host of ['10.0.0.1', 'broker', '127.example', '[::2]', '128.0.0.1']) {
    expect(() => checkBroker(shared, settings(`nats://${host}:4222`, 'none'))).toThrow(/on loopback only/)
    checkBroker(shared, settings(`nats://${host}:4222`, 'token'))
    checkBroker({ kind: 'root' }, settings(`nats://${host}:4222`, 'none'))
  }
})

it('A range of ids has two ordered numbers above those of the system', () => {
  expect(idRange('200000-201023')).toEqual(IDS)
  for (const text of ['', '200000', '2-1', '999-2000', '201023-200000', '1000-4294967294', '1000..2000']) {
    expect(() => idRange(text)).toThrow(/a range FROM-TO/)
  }
})

it('Trial servers share no ids as root, and otherwise run tasks as their own user', () => {
  expect(trialIdentity('/', 1, ORDINARY)).toEqual(['--tasks-as-me'])
  const [first, second] = [1, 2].map((index) => trialIdentity('/', index, 0))
  expect(first).not.toEqual(second)
  expect(trialIdentity('/proc/1/fd/x', 1, 0)).toEqual(['--task-user', 'root'])
})

it('A server with a range of ids runs at most as many attempts', () => {
  const ids = { from: 5_000_000, to: 5_000_009 }
  expect(attemptsWithIds({ kind: 'uid_per_attempt', ids })).toBe(10)
  expect(attemptsWithIds({ kind: 'task_user', uid: 1, gid: 1, home: '/', ids })).toBe(10)
  expect(attemptsWithIds({ kind: 'root' })).toBeNull()
  expect(attemptsWithIds({ kind: 'server_user' })).toBeNull()
})
