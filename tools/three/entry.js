// The parts of three.js that the replay page uses: `npm ci && npm run bundle` writes src/bunraku/view/page/three.min.js.gz
export {
  BufferAttribute, BufferGeometry, Color, DirectionalLight, HemisphereLight, LineBasicMaterial, LineSegments, Mesh,
  MeshBasicMaterial, MeshStandardMaterial, PCFShadowMap, PerspectiveCamera, PlaneGeometry, Quaternion, RingGeometry,
  Scene, ShadowMaterial, SphereGeometry, Vector3, WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
export { toCreasedNormals } from "three/addons/utils/BufferGeometryUtils.js";
