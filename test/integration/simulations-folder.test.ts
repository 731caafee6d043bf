/** The folder of simulations is unusable: the controller does not need it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openSimulations } from '../../services/simulations/simulations.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { getJson, serve, WITHOUT_HISTORY } from '../support/served.ts'

const folder = temporaryFolder()

it(
  'A controller starts although a file is in the place of its folder, and reports it',
  { timeout: 300_000 },
  async () => {
    const data = join(folder, 'data')
    mkdirSync(data)
    writeFileSync(join(data, 'simulations'), '')
    const served = await serve(data, WITHOUT_HISTORY)
    expect(await getJson(`${served.url}/readyz`)).toMatchObject({ status: 'ready' })
    expect(await getJson(`${served.url}/api/v1/simulations`)).toMatchObject({ items: [] })
    for (const path of ['scenarios', 'traces']) {
      const answer = await fetch(`${served.url}/api/v1/${path}`)
      expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
        503,
        expect.stringContaining('ENOTDIR'),
      ])
    }
    const { code, stderr } = await headroom(['status', '--server', served.url])
    expect([code, stderr]).toEqual([0, ''])
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
  },
)

it('The log names what could not be read', async () => {
  const dataDir = join(folder, 'other')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'simulations'), '')
  const lines: string[] = []
  const simulations = await openSimulations({ dataDir, log: (line) => lines.push(line) })
  await simulations.close()
  expect(lines).toEqual([
    expect.stringMatching(
      /^cannot load earlier simulations; the controller continues without them: Error: ENOTDIR/,
    ),
  ])
})
