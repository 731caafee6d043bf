import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { putJson, serve, WITHOUT_HISTORY } from '../support/served.ts'

const folder = temporaryFolder()

it('A recording is decided again by the command, which detects a flipped byte', async () => {
  const data = join(folder, 'data')
  const served = await serve(data, WITHOUT_HISTORY)
  const { tasks } = createClient({ url: served.url })
  const { id } = await tasks.submit({ vram_mib: 1_000, command: ['sleep', '60'] })
  await expect.poll(async () => (await tasks.get(id)).state).toBe('running')
  const { status } = await putJson(`${served.url}/api/v1/config`, { default_vram_overcommit_percent: 70 })
  expect(status).toBe(200)
  served.process.kill('SIGTERM')
  await served.ended

  const recording = join(data, 'recording')
  const again = await headroom(['sim', 'redecide', recording])
  expect(again.stderr).toBe('')
  expect(again.stdout).toMatch(
    /^1 files, .* inputs of 1 controller starts from 20.*\nidentical: [1-9]\d* decisions and \d+ events\n$/,
  )
  expect(again.code).toBe(0)
  expect((await headroom(['sim', 'redecide', data])).stdout).toBe(again.stdout)

  const file = join(recording, readdirSync(recording)[0] as string)
  const bytes = readFileSync(file)
  bytes[2_000] = (bytes[2_000] as number) ^ 4
  writeFileSync(file, bytes)
  const damaged = await headroom(['sim', 'redecide', file])
  expect(damaged.code).toBe(2)
  expect(damaged.stderr).toContain(`${file}: what was written at byte`)
})
