/** Data folders: what a server offers, and where a task that asks for one may run. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { missingFeature, requiredFeatures } from '../../controller/policy/placement/feasible.ts'
import type { Node } from '../../controller/model/placement.ts'
import { mountsOf } from '../../services/gpu-server/mounts.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const folder = temporaryFolder()
mkdirSync(join(folder, 'data'))
symlinkSync('data', join(folder, 'link'))
writeFileSync(join(folder, 'file'), '')

describe('the option --mount', () => {
  it('names folders, read-only unless the path ends in :rw; a link of the administrator is resolved', () => {
    expect(mountsOf([`datasets=${folder}/link`, `scratch=${folder}/data:rw`])).toEqual([
      { name: 'datasets', source: join(folder, 'data'), isReadOnly: true },
      { name: 'scratch', source: join(folder, 'data'), isReadOnly: false },
    ])
  })

  it.each([
    ['datasets', 'must be NAME=/folder'],
    ['Data=/srv', 'lowercase letters'],
    [`${'x'.repeat(33)}=/srv`, 'at most 32 characters'],
    ['../etc=/srv', 'must be NAME=/folder'],
    ['datasets=srv', 'must be an absolute path'],
    [`datasets=${folder}/none`, 'is not a folder'],
    [`datasets=${folder}/file`, 'is not a folder'],
  ])('is refused with the reason: %s', (text, words) => {
    expect(() => mountsOf([text])).toThrow(words)
  })

  it('is refused if a name is given twice, or for more than 16 folders', () => {
    expect(() => mountsOf([`a=${folder}/data`, `a=${folder}/data`])).toThrow(
      '--mount a: the name is specified twice',
    )
    const many = Array.from({ length: 17 }, (_, i) => `m${i}=${folder}/data`)
    expect(() => mountsOf(many)).toThrow('at most 16 folders')
  })
})

describe('a task that mounts data folders', () => {
  const required = requiredFeatures({ image: 'a:1', mounts: ['datasets', 'scratch'] })
  const on = (...features: readonly string[]) => missingFeature(required, { features } as unknown as Node)

  it('runs only on servers that offer all of them', () => {
    expect(on('image', 'mount:datasets', 'mount:scratch')).toBeNull()
    expect(on('image', 'mount:datasets')).toBe('mount:scratch')
    expect(on('mount:datasets', 'mount:scratch')).toBe('image')
  })

  it('runs on every simulated server, which stands for any folder', () => {
    expect(on('image', 'mounts')).toBeNull()
  })
})
