import { resolve } from 'node:path'
import { defineConfig } from 'vite'
import solid from 'vite-plugin-solid'

const ROOT = resolve(import.meta.dirname, '..')

/** The page is served by the controller under a policy that allows its own files and nothing else, so nothing is put into the markup. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [solid()],
  worker: { format: 'es' },
  build: {
    outDir: resolve(ROOT, process.env['DIST'] ?? 'dist', 'ui'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': process.env['HEADROOM_URL'] ?? 'http://127.0.0.1:30080' } },
})
