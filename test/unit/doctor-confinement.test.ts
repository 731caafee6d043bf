import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { keyChecks, nodeIdentityCheck, taskUserChecks } from '../../cli/doctor/confinement.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const env = (file: string) => ({ CONTROLLER_NATS_NKEY_FILE: file })

it('A key that every user can read fails, and the check names the command that replaces it', () => {
  const file = join(temporaryFolder(), 'node-gpu-1.nk')
  writeFileSync(file, 'SU', { mode: 0o644 })
  expect(keyChecks(env(file))).toMatchObject([
    { verdict: 'fail', todo: expect.stringContaining('headroom nats rotate node-gpu-1') as string },
  ])
  chmodSync(file, 0o600)
  expect(keyChecks(env(file))).toMatchObject([{ verdict: 'ok' }])
  expect(keyChecks({})).toEqual([])
  expect(keyChecks(env('/no/such.nk'))).toMatchObject([{ verdict: 'fail' }])
})

it('Keys of other parties next to the own key are found, except in the folder that generates them', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'keys'))
  for (const name of ['controller', 'node-a', 'node-b'])
    writeFileSync(join(folder, `keys/${name}.nk`), 'SU', { mode: 0o600 })
  const [found] = keyChecks(env(join(folder, 'keys/node-a.nk')))
  expect(found).toMatchObject({
    verdict: 'warn',
    detail: expect.stringMatching(/keys of other identities: \S+ and 1 more/) as string,
  })
  expect(found?.todo).toContain('headroom nats rotate --all')
  writeFileSync(join(folder, 'nats.conf'), '')
  if (process.getuid?.() === 0)
    expect(keyChecks(env(join(folder, 'keys/node-a.nk')))).toMatchObject([{ verdict: 'ok' }])
})

it('A task that runs as root or as the user of its server fails', () => {
  const proc = temporaryFolder()
  const process = (pid: number, uid: number, cmdline: string, environ = ''): void => {
    mkdirSync(join(proc, `${pid}`))
    writeFileSync(join(proc, `${pid}/status`), `Name:\tx\nUid:\t${uid}\t${uid}\t${uid}\t${uid}\n`)
    writeFileSync(join(proc, `${pid}/cmdline`), cmdline)
    writeFileSync(join(proc, `${pid}/environ`), environ)
  }
  expect(taskUserChecks(proc)).toEqual([])
  process(10, 0, 'node\0main.js\0gpu-server\0--allow-exec\0')
  process(11, 200_000, 'python\0train.py\0', 'PATH=/bin\0HEADROOM_ATTEMPT=a.1.x\0')
  expect(taskUserChecks(proc)).toMatchObject([{ verdict: 'ok' }])
  process(12, 0, 'python\0', 'HEADROOM_ATTEMPT=b.1.x\0')
  expect(taskUserChecks(proc)).toMatchObject([
    { verdict: 'fail', detail: expect.stringMatching(/task process 12 runs as root/) as string },
  ])
})

it('Nodes whose tasks can read the server, or with an unknown task identity, are named', () => {
  const node = (name: string, identity: string | null) => ({ name, task_identity: identity })
  expect(nodeIdentityCheck([])).toEqual([])
  expect(nodeIdentityCheck([node('a', 'uid_per_attempt'), node('b', 'task_user')])).toMatchObject([
    { verdict: 'ok' },
  ])
  for (const identity of ['root', 'server_user', null]) {
    expect(nodeIdentityCheck([node('a', 'uid_per_attempt'), node('b', identity)])).toMatchObject([
      { verdict: 'warn', detail: expect.stringMatching(/^b /) as string },
    ])
  }
})
