import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { serve } from '../support/served.ts'

const folder = temporaryFolder()

it('A recording is decided again by the command, which detects a flipped byte', async () => {
  const data = join(folder, 'data')
  const served = await serve(data)
  const answer = await fetch(`${served.url}/api/v1/config`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ default_vram_overcommit_percent: 70 }),
  })
  expect(answer.status).toBe(200)
  served.process.kill('SIGTERM')
  await served.ended

  const recording = join(data, 'recording')
  const again = await headroom(['sim', 'redecide', recording])
  expect(again.stderr).toBe('')
  expect(again.stdout).toMatch(
    /^1 files, .* inputs of 1 controller starts from 20.*\nidentical: \d+ decisions and \d+ events\n$/,
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
