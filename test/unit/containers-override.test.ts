import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { differences, FORBIDDEN, overrideOf, type ComposeConfig } from '../containers/override.ts'

const text = readFileSync(join(import.meta.dirname, '../../docker-compose.yml'), 'utf8')
const shipped = parse(text, { merge: true }) as ComposeConfig

describe('The override of make test-containers', () => {
  it('changes only the runtime and the device of the GPU server', () => {
    const override = overrideOf(shipped)
    expect(override).toEqual({
      services: {
        'gpu-server': {
          runtime: 'runc',
          command: [
            'gpu-server',
            '--device',
            'process',
            '--inventory',
            '/app/inventory.yaml',
            '--allow-exec',
            '--stop-tasks',
          ],
        },
      },
    })
    expect(differences(shipped, merged(shipped, override))).toEqual([])
  })

  it.each(FORBIDDEN.map(({ path, override }) => [path, override] as const))(
    'fails when %s differs',
    (path, override) => {
      const found = differences(shipped, merged(merged(shipped, overrideOf(shipped)), override))
      expect(found).toHaveLength(1)
      expect(found[0]).toMatch(new RegExp(`^${path}\\b`))
    },
  )

  it('fails when the shipped file is started without the override, or has no device', () => {
    const found = differences(shipped, shipped).map((each) => each.split(':')[0])
    expect(found.toSorted((a = '', b = '') => (a < b ? -1 : 1))).toEqual([
      'services.gpu-server.command',
      'services.gpu-server.runtime',
    ])
    expect(() => overrideOf({ services: { 'gpu-server': { command: ['gpu-server'] } } })).toThrow(
      '--device nvidia',
    )
  })
})

/** Merges as Compose does: fields one by one, lists together, a command or entrypoint as a whole. */
function merged<T>(base: T, over: unknown, key = ''): T {
  if (Array.isArray(base) && Array.isArray(over))
    return (['command', 'entrypoint'].includes(key) ? over : [...base, ...over]) as T
  if (!isFields(base) || !isFields(over)) return over as T
  const names = new Set([...Object.keys(base), ...Object.keys(over)])
  return Object.fromEntries(
    [...names].map((name) => [name, name in over ? merged(base[name], over[name], name) : base[name]]),
  ) as T
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
