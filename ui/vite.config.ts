import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, defineConfig, type HtmlTagDescriptor, type Plugin, type Rolldown } from 'vite'
import solid from 'vite-plugin-solid'
import { ICON_NAMES } from './design/icon-names.ts'

const ROOT = resolve(import.meta.dirname, '..')
const OUT = resolve(ROOT, process.env['DIST'] ?? 'dist', 'ui')

/**
 * Writes a gzip file next to each script and style, to be served as is. Over plain HTTP, browsers accept only
 * gzip.
 */
function packed(): Plugin {
  return {
    name: 'packed',
    apply: 'build',
    closeBundle() {
      const assets = join(OUT, 'assets')
      for (const name of readdirSync(assets).filter((each) => /\.(js|css)$/.test(each))) {
        writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
      }
    },
  }
}

/** Builds the early script as a single file: with shared modules it would wait for more files. */
function early(): Plugin {
  return {
    name: 'early',
    apply: 'build',
    async buildStart() {
      const built = (await build({
        configFile: false,
        logLevel: 'warn',
        build: {
          write: false,
          target: 'es2022',
          lib: { entry: join(import.meta.dirname, 'early.ts'), formats: ['iife'], name: 'early' },
        },
      })) as Rolldown.RolldownOutput[]
      this.emitFile({ type: 'asset', name: 'early.js', source: built[0]?.output[0].code ?? '' })
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle = {} }): HtmlTagDescriptor[] {
        const script = Object.values(bundle).find(
          (file) => file.type === 'asset' && file.names.includes('early.js'),
        )
        if (script === undefined) throw new Error('the early script was not built')
        return [
          { tag: 'script', attrs: { src: `/${script.fileName}`, async: true }, injectTo: 'head-prepend' },
        ]
      },
    },
  }
}

/** Leaves out the icons that the page does not use: the package has all of them in one file. */
function usedIcons(): Plugin {
  return {
    name: 'used-icons',
    load(id) {
      if (!id.endsWith('@iconify-json/lucide/icons.json')) return null
      const { icons } = JSON.parse(readFileSync(id, 'utf8')) as { readonly icons: Record<string, unknown> }
      return JSON.stringify({ icons: Object.fromEntries(ICON_NAMES.map((name) => [name, icons[name]])) })
    },
  }
}

/**
 * The controller serves the page under a policy that allows only its own files, so nothing is inlined into
 * the markup.
 */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [usedIcons(), solid(), early(), packed()],
  worker: { format: 'es' },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    // One style for all pages: the preload helper does not retry a split style that failed to load.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // On a slow machine it would print plugin timings, which only matter for work on the build.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  // Not `/api`: the folder of that name has sources.
  server: { proxy: { '/api/v1': process.env['HEADROOM_URL'] ?? 'http://127.0.0.1:30080' } },
})
