import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { whyNotUnderstood } from '../support/command-lines.ts'

const FOLDER = join(import.meta.dirname, '../../deploy/systemd')
const KNOWN = new Set<string>([...Object.values(ENVIRONMENT).map(({ name }) => name), 'NODE_ENV'])
const MAIN = '/usr/bin/headroom '

const units = globSync('*.service', { cwd: FOLDER }).toSorted((a, b) => (a < b ? -1 : 1))

describe.each(units)('%s', (name) => {
  const lines = readFileSync(join(FOLDER, name), 'utf8').split('\n')
  const valuesOf = (key: string): readonly string[] =>
    lines.flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []))

  it('starts an existing command and restarts it whenever it ends', () => {
    const [start] = valuesOf('ExecStart')
    expect(start?.startsWith(MAIN)).toBe(true)
    expect(whyNotUnderstood(start?.slice(MAIN.length).split(' ') ?? [])).toBeNull()
    expect(valuesOf('Restart')).toEqual(['always'])
    // After a full disk has space again, the unit must start regardless of how often it failed before.
    expect(valuesOf('StartLimitIntervalSec')).toEqual(['0'])
  })

  it('sets variables that are read, and keeps its data in its state folder', () => {
    const set = valuesOf('Environment').flatMap((value) => value.split(' '))
    expect(set.map((each) => each.split('=')[0] as string).filter((each) => !KNOWN.has(each))).toEqual([])
    const [folder = null] = valuesOf('StateDirectory')
    if (folder === null) expect(valuesOf('DynamicUser')).toEqual(['yes'])
    else expect(set).toContainEqual(expect.stringMatching(new RegExp(`_DIR=/var/lib/${folder}$`)))
  })
})

it('A GPU server that ends leaves its guards and tasks running', () => {
  expect(readFileSync(join(FOLDER, 'headroom-gpu-server.service'), 'utf8')).toMatch(/^KillMode=process$/m)
})
