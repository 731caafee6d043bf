/** Files of the Helm chart that must agree with the code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { SCHEDULER_NAME, VRAM_RESOURCE } from '../../../operator/contract/names.ts'
import { headText, OBJECTS_FILE } from '../../../tools/reference/kustomize.ts'
import {
  POLICIES_FILE,
  policiesText,
  WEBHOOKS_FILE,
  webhooksText,
} from '../../../tools/reference/webhooks.ts'

const FILES = join(import.meta.dirname, '../../../deploy/helm/headroom/files')
const yaml = (name: string): unknown => parse(readFileSync(join(FILES, name), 'utf8'))

it('The webhook configurations and the policies are those of the code', () => {
  expect(readFileSync(POLICIES_FILE, 'utf8')).toBe(policiesText())
  expect(readFileSync(WEBHOOKS_FILE, 'utf8')).toBe(webhooksText())
})

it('The objects for kustomize are made from the chart as it is now', () => {
  const why = 'run `make kubernetes-tools && node tools/reference/kustomize.ts`'
  expect(readFileSync(OBJECTS_FILE, 'utf8').startsWith(headText()), why).toBe(true)
})

it('Alert rules use metrics that a component has', () => {
  const sources = ['admission', 'run', 'agent'].map((name) =>
    readFileSync(join(import.meta.dirname, `../../../services/operator/${name}.ts`), 'utf8'),
  )
  const names = readFileSync(join(FILES, 'rules.yaml'), 'utf8').match(/headroom_[a-z_]+/g) ?? []
  expect(names.length).toBeGreaterThan(3)
  for (const name of names) expect(sources.join()).toContain(`'${name}'`)
})

it('The scheduler has the name that admission sets, sees all nodes, and leaves VRAM to the extender', () => {
  expect(yaml('scheduler.yaml')).toMatchObject({
    percentageOfNodesToScore: 100,
    profiles: [
      {
        schedulerName: SCHEDULER_NAME,
        plugins: { postFilter: { disabled: [{ name: 'DefaultPreemption' }] } },
      },
    ],
    extenders: [
      {
        enableHTTPS: true,
        ignorable: false,
        nodeCacheCapable: true,
        managedResources: [{ name: VRAM_RESOURCE, ignoredByScheduler: true }],
      },
    ],
  })
})

it.each(['admission', 'operator', 'uninstall'])(
  'The rights of %s use no wildcard, and list Secrets by name',
  (name) => {
    const roles = yaml(`roles/${name}.yaml`) as Record<string, { resources: string[]; verbs: string[] }[]>
    const rules = Object.values(roles).flat()
    expect(JSON.stringify(rules)).not.toContain('*')
    for (const rule of rules.filter(({ resources }) => resources.includes('secrets')))
      expect(rule).toHaveProperty('resourceNames')
  },
)
