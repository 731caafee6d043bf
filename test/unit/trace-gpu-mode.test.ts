/** Which imported tasks are exclusive, and which share GPUs (decision 0094). */
import { describe, expect, it } from 'vitest'
import { parseVramMap } from '../../simulator/trace/import/vram-map.ts'
import type { ImportOptions } from '../../simulator/trace/import/importer.ts'
import { importText } from '../support/imported.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const folder = temporaryFolder()

const SOURCES: Readonly<Record<string, string>> = {
  csv: 'id,at,duration,gpus\na,0,60,2\n',
  swf: '1 0 -1 60 4 -1 -1 4 -1 -1 1 7 -1 -1 1 -1 -1 -1\n',
  slurm: 'JobIDRaw|Submit|ElapsedRaw|AllocTRES|State\n7|2024-03-01T10:00:00|60|gres/gpu:a900=2|COMPLETED\n',
  tiresias: 'job_id,num_gpu,submit_time,iterations,model_name,duration,interval\na,2,0,1,x,60,1\n',
  gavel: 'job_id,gpus,arrival_s,duration_s_v100\na,2,0,60\n',
  helios: 'job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n' +
    'a,u,v,2,8,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 00:02:00,60,60\n',
  philly: JSON.stringify([
    {
      jobid: 'a',
      submitted_time: '2017-10-01 00:00:00',
      attempts: [
        { start_time: '2017-10-01 00:00:00', end_time: '2017-10-01 00:01:00',
          detail: [{ ip: 'm1', gpus: ['gpu0', 'gpu1'] }] },
      ],
    },
  ]),
  'azure-llm': 'arrival_s,context_tokens,generated_tokens\n0,10,10\n',
} // prettier-ignore

async function modes(
  format: string,
  options: ImportOptions = {},
  text = SOURCES[format] as string,
): Promise<unknown[]> {
  const { header, tasks } = await importText(folder, format, text, options)
  return [
    [...new Set(tasks.map(({ gpu_mode, vram_mib }) => `${gpu_mode} ${vram_mib}`))].join(),
    header.importer?.synthetic,
  ]
}

describe('the GPU mode of imported tasks', () => {
  it.each(Object.keys(SOURCES))(
    'is exclusive for %s without VRAM in the source, and shared with --vram-mib or --shared',
    async (format) => {
      expect(await modes(format)).toEqual(['exclusive 0', ['gpu_mode', 'activity']])
      expect(await modes(format, { vramMib: 9000 })).toEqual(['shared 9000', ['vram_mib', 'activity']])
      expect(await modes(format, { shared: true })).toEqual(['shared 8192', ['vram_mib', 'activity']])
      expect(await modes(format, { exclusive: true })).toEqual(['exclusive 0', ['activity']])
    },
  )

  it('is shared for Slurm jobs with a GPU type in --vram-map', async () => {
    expect(await modes('slurm', { vramMap: parseVramMap('a900=40960') })).toEqual([
      'shared 38912',
      ['vram_mib', 'activity'],
    ])
  })

  it('is decided by a CSV cell for its row', async () => {
    const rows = [
      'id,at,duration,vram_mib,exclusive',
      'a,0,60,,no',
      'b,0,60,4096,',
      'c,0,60,4096,yes',
      'd,0,60,,',
    ]
    expect(await modes('csv', {}, rows.join('\n'))).toEqual([
      'shared 8192,shared 4096,exclusive 4096,exclusive 0',
      ['vram_mib', 'gpu_mode', 'activity'],
    ])
    expect(await modes('csv', { shared: true }, rows.join('\n'))).toEqual([
      'shared 8192,shared 4096',
      ['vram_mib', 'activity'],
    ])
  })

  it('is shared with --shared even if the source says exclusive', async () => {
    const pods = [
      'name,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time',
      'p,1,1000,T4,BE,0,60',
    ].join('\n')
    expect(await modes('openb', {}, pods)).toEqual(['exclusive 14336', ['vram_mib', 'activity']])
    expect(await modes('openb', { shared: true }, pods)).toEqual(['shared 14336', ['vram_mib', 'activity']])
  })
})

describe('an import that keeps no row', () => {
  it('fails with the reasons', async () => {
    const text = 'jobid,arrival,duration\n1,2,3\n4,5,6\n'
    await expect(importText(folder, 'swf', text)).rejects.toThrow(
      'swf.txt: keeps no row of 3: 3 wrong_number_of_fields',
    )
  })

  it('also fails if the selection leaves out everything', async () => {
    await expect(importText(folder, 'csv', SOURCES['csv'] as string, { fromMs: 1000 })).rejects.toThrow(
      '1 outside_window',
    )
  })
})
