"use strict";(()=>{var j,Ys,Gu,Xe,Io,pn,Zs,ln,Ks,Ro,To,Vu,Gt=Symbol.for("pv"),fn={},mn=[],Ou=/^m(i|n|o|s|text|space)$/,Co=Array.isArray,js=mn.slice,ot=Object.assign;function nt(e){e&&e.parentNode&&e.remove()}function cn(e,t,n,o,r){var s={type:e,props:t,key:n,ref:o,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Gt,__v:r||++Ys,__i:-1,__u:0};return!r&&j.vnode&&j.vnode(s),s}function A(e){return e.children}function un(e,t){this.props=e,this.context=t,this.__g=0}function Je(e,t){if(t==null)return e.__&&Je(e.__,e.__i+1);for(var n;t<e.__k.length;t++)if((n=e.__k[t])&&n.__e)return n.__e;return typeof e.type!="function"||e.props.__P?null:Je(e)}function Mu(e){var t,n=e.__v,o=n.__e,r=[],s=[],a=e.__P;a&&((t=ot({constructor:Gt},n)).__v=n.__v+1,j.vnode&&j.vnode(t),Po(a,t,n,e.__n,a.namespaceURI,32&n.__u?[o]:null,r,o||Je(n),32&n.__u,s),t.__v=n.__v,t.__.__k[t.__i]=t,qs(r,t,s),n.__=n.__e=null,t.__e!=o&&$s(t))}function $s(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(t){return t&&(e.__e=t.__e)}),$s(e)}function Bs(e){(8&e.__g||(e.__g|=8,Xe.push(e),pn++))&&Io==j.debounceRendering||((Io=j.debounceRendering)||queueMicrotask)(Xs)}function Xs(){try{for(var e,t=1;Xe.length;)Xe.length>t&&Xe.sort(Zs),e=Xe.shift(),t=Xe.length,8&e.__g&&Mu(e)}finally{(pn=Xe.length)&&(Io||queueMicrotask)(Xs)}}function Js(e,t,n,o,r,s,a,l,c,d,u){var f,m,p,h,y,b,w=o.__k||mn,v=t.length;for(c=Fu(n,t,w,c,v),f=0;f<v;f++)(p=n.__k[f])!=null&&(m=~p.__i&&w[p.__i]||fn,p.__i=f,b=Po(e,p,m,r,s,a,l,c,d,u),h=p.__e,(m.ref!=p.ref||8&m.__u)&&(m.ref&&Lo(m.ref,null,p,m),p.ref&&u.push(p.ref,p.__c||h,p)),y=y||h,4&p.__u?(c=Hs(p,c,e,!m.__v),m.__e&&(m.__e=null)):typeof p.type=="function"&&b!==void 0?c=b:h&&(c=h.nextSibling),p.__u&=-21);return n.__e=y,c}function Fu(e,t,n,o,r){var s,a,l,c,d,u,f,m,p,h=n.length,y=h,b=0,w=0,v=e.__k=Array(r);for(s=0;s<r;s++)(a=t[s])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=v[s]=cn(null,a):Co(a)?a=v[s]=cn(A,{children:a}):a.constructor===Gt&&a.__b?a=v[s]=cn(a.type,a.props,a.key,a.ref,a.__v):v[s]=a,c=s+b,a.__=e,a.__b=e.__b+1,l=null,~(d=a.__i=Wu(a,n,c,y))&&(y--,(l=n[d])&&(l.__u|=2)),l&&l.__v?(a.__u|=16,d==c-1?b--:d==c+1?b++:d!=c&&(d>c?b--:b++,w=1)):(~d||(r>h?b--:r<h&&b++),typeof a.type!="function"&&(a.__u|=4))):v[s]=null;if(w){for(u=[],f=[],s=0;s<r;s++)if((a=v[s])&&16&a.__u){for(b=0,m=u.length;b<m;)u[p=b+m>>1]<a.__i?b=p+1:m=p;u[b]=a.__i,f[s]=b+1}for(b=u.length;s--;)f[s]&&(f[s]==b?b--:v[s].__u|=4)}if(y)for(s=0;s<h;s++)!(l=n[s])||2&l.__u||(l.__e==o&&(o=Je(l)),Go(l,l));return o}function Hs(e,t,n,o){var r,s,a,l;if(typeof e.type=="function"){if(e.props.__P)return t;if(r=e.__k)for(s=0;s<r.length;s++)r[s]&&(r[s].__=e,t=Hs(r[s],t,n,!1));return t}for(t&&!t.parentNode&&(t=Je(e))&&!t.parentNode&&(t=null),a=e.__e,l=t;l&&l.nodeType==8;)l=l.nextSibling;for(a!=l&&(!o&&n.moveBefore&&a.parentNode?n.moveBefore(a,t):n.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&t.nodeType==8&&!t.data.startsWith("$s"););return t}function Wu(e,t,n,o){var r,s=e.key,a=e.type,l=t[n],c=l&&!(2&l.__u);if(l===null&&s==null||c&&s==l.key&&a==l.type)return n;if(o>(c?1:0)){for(r=n-1;r>=0;r--)if((l=t[r])&&!(2&l.__u)&&s==l.key&&a==l.type)return r;for(r=n+1;r<t.length;r++)if((l=t[r])&&!(2&l.__u)&&s==l.key&&a==l.type)return r}return-1}function Ds(e,t,n){n==null&&(n=""),t[0]=="-"?e.setProperty(t,n):e[t]=n}function an(e,t,n,o,r){var s,a;if(t=="style")if(typeof n=="string")e.style.cssText=n;else{if(typeof o=="string"&&(e.style.cssText=o=""),o)for(t in o)n&&t in n||Ds(e.style,t);if(n)for(t in n)o&&n[t]==o[t]||Ds(e.style,t,n[t])}else if(t[0]=="o"&&t[1]=="n")typeof n!="function"&&(n=null),typeof o!="function"&&(o=null),(e.__e||(e.__e={}))[t]=n,n&&o||(a=To[t]||(To[t]=Uu(t)),(e.__a||(e.__a={}))[t]=Ro,s=t!=(t=t.replace(Ks,"$1")),(t=t.slice(2))[0]<"a"&&(t=t.toLowerCase()),n?e.addEventListener(t,a,s):e.removeEventListener(t,a,s));else{if(r=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)try{return void(e[t]=n??"")}catch{}if(typeof n=="function")return;n==null||n===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&n==1?"":n)}}function Uu(e){return function(t){var n=this.__e;if(n){if(n=n[e],t[ln]==null)t[ln]=Ro++;else if(t[ln]<this.__a[e])return;return n(j.event?j.event(t):t)}}}function Po(e,t,n,o,r,s,a,l,c,d){var u,f,m,p,h,y,b,w,v,N,k,x,R,C,I,F,K,U,S=t.type;if(t.constructor!==Gt)return null;128&n.__u&&(c=32&n.__u,u=n.__c.__z)&&(t.__u|=c,f=s=[],u.nodeType==8?l=dn(u,s):s.push(u),l=s[0]||l),(u=j.__b)&&u(t);e:if(typeof S=="function"){m=a.length;try{if(w=t.props,v=(u=S.prototype)&&u.render,N=(u=S.contextType)&&o[u.__c],k=u?N?N.props.value:u.__:o,(p=n.__c)?(t.__c=p,2&p.__g&&(p.__g|=1)):(v?t.__c=p=new S(w,k):(t.__c=p=new un(w,k),p.constructor=S,p.render=Du),N&&N.sub(p),p.state||(p.state={}),p.__n=o,p.__g|=8,p.__h=[],p.__k=[]),v&&(p.__s||(p.__s=p.state),S.getDerivedStateFromProps&&(p.__s==p.state&&(p.__s=ot({},p.__s)),ot(p.__s,S.getDerivedStateFromProps(w,p.__s)))),h=p.props,y=p.state,p.__v=t,n.__c){if(w!==h&&v&&!S.getDerivedStateFromProps&&p.componentWillReceiveProps&&p.componentWillReceiveProps(w,k),t.__v==n.__v&&!(8&p.__g)||!(4&p.__g)&&p.shouldComponentUpdate&&p.shouldComponentUpdate(w,p.__s,k)===!1){t.__v!=n.__v&&(p.props=w,p.state=p.__s,p.__g&=-9),t.__e=n.__e,t.__k=n.__k,t.__k.some(function(T){T&&(T.__=t)}),mn.push.apply(p.__h,p.__k),p.__k=[],p.__h.length&&a.push(p),l=Je(n);break e}p.componentWillUpdate&&p.componentWillUpdate(w,p.__s,k),v&&p.componentDidUpdate&&p.__h.push(function(){p.componentDidUpdate(h,y,b)})}else v&&!S.getDerivedStateFromProps&&p.componentWillMount&&p.componentWillMount(),v&&p.componentDidMount&&p.__h.push(p.componentDidMount);p.context=k,p.props=w,p.__P=e,p.__g&=-5,x=j.__r,R=v?25:0;do p.__g&=-9,x&&x(t),u=p.render(p.props,p.state=p.__s,p.context);while(8&p.__g&&++R<25);v&&(mn.push.apply(p.__h,p.__k),p.__k=[]),p.state=p.__s,p.getChildContext&&(o=ot({},o,p.getChildContext())),v&&n.__c&&p.getSnapshotBeforeUpdate&&(b=p.getSnapshotBeforeUpdate(h,y)),C=u&&u.type===A&&u.key==null?u.props.children:u,w.__P&&(u=l,r=(e=w.__P).namespaceURI,c=s=null,n.props&&n.props.__P!=e&&(n.__k.some(function(T){T&&Go(T,T)}),n.__k=null),l=n.__k?Je(n,0):null),l=Js(e,Co(C)?C:[C],t,n,o,r,s,a,l,c,d),w.__P&&(t.__e=null,l=u),t.__u&=-161,f&&f.some(nt),p.__h.length&&a.push(p),1&p.__g&&(p.__g&=-4)}catch(T){if(a.length=m,t.__v=null,c||s)if(T&&T.then){if(t.__u|=128|c,s){for(~(K=s.indexOf(l||void 0))||(K=s.length);(U=s[K-1])&&U.nodeType==8;)K--;for(;K<s.length;K++)if(U=s[K])if(s[K]=null,I){if(U==F)break}else{if(U.nodeType!=8)break;U.data.startsWith("$s")&&(F=dn(I=U))}}if(!I){for(;l&&l.nodeType==8&&l.nextSibling;)l=l.nextSibling;I=l}(u=dn(I=t.__c.__z||(t.__c.__z=I)))?(t.__e=I,l=u):t.__e=l,l=l&&l.nextSibling}else s&&s.some(nt);else t.__e=n.__e;t.__k||(t.__k=n.__k||[]),T&&T.then||zs(t),j.__e(T,t,n)}}else l=t.__e=Bu(n.__e,t,n,o,r,s,a,c,d,e);return(u=j.diffed)&&u(t),l}function dn(e,t){if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var n=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))n++;else if(e.data.startsWith("/$s")&&!--n)return e}t&&t.push(e)}}function zs(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(zs))}function qs(e,t,n){for(var o=0;o<n.length;)Lo(n[o++],n[o++],n[o++]);j.__c&&j.__c(t,e),e.some(function(r){try{e=r.__h,r.__h=[],e.some(function(s){s.call(r)})}catch(s){j.__e(s,r.__v)}})}function Bu(e,t,n,o,r,s,a,l,c,d){var u,f,m,p,h,y,b,w,v=n.props||fn,N=t.props,k=t.type;if(k=="svg"?r="http://www.w3.org/2000/svg":k=="math"?r="http://www.w3.org/1998/Math/MathML":r||(r="http://www.w3.org/1999/xhtml"),s){for(u=0;u<s.length;u++)if((h=s[u])&&(k?h.localName==k:h.nodeType==3)){e=h,s[u]=null;break}}if(!e){if(w=d.ownerDocument||document,!k)return w.createTextNode(N);e=w.createElementNS(r,k,N.is?N:d),l&&(j.__m&&j.__m(t,s),l=!1),s=null}if(k){if(d=k=="template"&&e.content||e,s=k=="textarea"&&N.defaultValue!=null?null:s&&js.call(d.childNodes),!l&&s)for(v={},u=0;u<e.attributes.length;u++)v[(h=e.attributes[u]).name]=h.value;for(u in v)h=v[u],u=="dangerouslySetInnerHTML"?m=h:u=="children"||u in N||u=="value"&&"defaultValue"in N||u=="checked"&&"defaultChecked"in N||an(e,u,null,h,r);for(u in N)h=N[u],u=="children"?p=h:u=="dangerouslySetInnerHTML"?f=h:u=="value"?y=h:u=="checked"?b=h:l&&typeof h!="function"||v[u]===h||an(e,u,h,v[u],r);f?(l||m&&(f.__html==m.__html||f.__html==e.innerHTML)||(e.innerHTML=f.__html),t.__k=[]):(m&&(e.textContent=""),(k=="foreignObject"||r=="http://www.w3.org/1998/Math/MathML"&&Ou.test(k))&&(r="http://www.w3.org/1999/xhtml"),Js(d,Co(p)?p:[p],t,n,o,r,s,a,s?s[0]:n.__k&&Je(n,0),l,c),s&&s.some(nt)),l&&k!="textarea"||(u="value",k=="progress"&&y==null?e.removeAttribute(u):y==null||y===e[u]&&(k!="progress"||y)||an(e,u,y,v[u],r),u="checked",b!=null&&b!=e[u]&&an(e,u,b,v[u],r))}else v===N||l&&e.data==N||(e.data=N);return e}function Lo(e,t,n,o){try{typeof e=="function"?t?t.__x=e(t)||1:o&&(o=o.__c||o.__e)&&(t=o.__x)&&(o.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(r){j.__e(r,n)}}function Go(e,t,n){var o,r,s,a;if(j.unmount&&j.unmount(e),!(o=e.ref)||o.current&&o.current!=e.__e||Lo(o,null,t,e),o=e.__c){if(o.componentWillUnmount)try{o.componentWillUnmount()}catch(l){j.__e(l,t)}o.__P=o.__n=null}if(o=e.__k)for(a=0;a<o.length;a++)o[a]&&Go(o[a],t,typeof e.type!="function"||n&&!e.props.__P);!n&&(o=e.__c)&&(o=o.__z)&&(r=dn(o,s=[]))&&(o==e.__e&&s.some(nt),nt(r),nt(o)),n||nt(e.__e),e.__e=e.__c=e.__=null}function Du(e,t,n){return this.constructor(e,n)}function Qs(e,t){var n,o,r,s;j.__&&j.__(e,t),t.nodeType==9&&(t=t.documentElement),o=(n=e&&32&e.__u)?null:t.__k,t.__k=cn(A,{children:[e]}),r=[],s=[],Po(t,t.__k,o||fn,fn,t.namespaceURI,o?null:t.firstChild?js.call(t.childNodes):null,r,o?o.__e:t.firstChild,n,s),qs(r,t.__k,s),t.__k.props.children=null}j={__e:function(e,t,n,o){for(var r,s,a;t=t.__;)if((r=t.__c)&&!(1&r.__g)){r.__g|=4;try{if((a=(s=r.constructor)&&s.getDerivedStateFromError)&&r.setState(s.getDerivedStateFromError(e)),r.componentDidCatch&&(r.componentDidCatch(e,o||{}),a=1),a&&8&r.__g)return void(r.__g|=2)}catch(l){e=l}}throw pn=0,e}},Ys=0,Gu=function(e){return e!=null&&e.constructor===Gt},un.prototype.setState=function(e,t){var n=this.__s;n&&n!=this.state||(n=this.__s=ot({},this.state)),typeof e=="function"&&(e=e(ot({},n),this.props)),e&&(ot(n,e),this.__v&&(t&&this.__k.push(t),Bs(this)))},un.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Bs(this))},un.prototype.render=A,Xe=[],pn=0,Zs=function(e,t){return e.__v.__b-t.__v.__b},ln=Symbol(),Ks=/(PointerCapture)$|Capture$/i,Ro=0,To={},Vu=0;var ft,se,Vo,ea,Oo=Object.is,hn=0,ca=[],Mo=[],ne=j,ta=ne.__b,na=ne.__r,oa=ne.diffed,ra=ne.__c,sa=ne.unmount,aa=ne.__;function gn(e,t){ne.__h&&ne.__h(se,e,hn||t),hn=0;var n=se.__H||(se.__H={__:[],__h:[]});return e>=n.__.length&&n.__.push({}),n.__[e]}function W(e){return hn=1,Yu(ua,e)}function Yu(e,t,n){var o=gn(ft++,2);if(o.t=e,!o.__c&&(o.__=[n?n(t):ua(void 0,t),function(s){var a=(o.__N||o.__)[0],l=o.t(a,s);Oo(a,l)||(o.__N=[l,o.__[1]],o.__c.setState({}))}],o.__c=se,!se.__f)){se.__f=!0;var r=se.shouldComponentUpdate;se.shouldComponentUpdate=function(s,a,l){var c=this.__H;if(!c)return!0;var d=!1,u=this.props!=s;if(c.__.some(function(m){m.__N&&(d=!0,Oo(m.__[0],m.__N[0])||(u=!0))}),r){var f=r.call(this,s,a,l);return d?f||u:f}return!d||u}}return o.__}function z(e,t){var n=gn(ft++,3);!ne.__s&&Wo(n.__H,t)&&(n.__P=!0,n.__=e,n.u=t,se.__H.__h.push(n))}function bn(e,t){var n=gn(ft++,4);!ne.__s&&Wo(n.__H,t)&&(n.__P=!1,n.__=e,n.u=t,se.__h.push(n))}function pe(e){return hn=5,J(function(){return{current:e}},[])}function J(e,t){var n=gn(ft++,7);return Wo(n.__H,t)&&(n.__=e(),n.__H=t),n.__}function Zu(){var e;do{for(;e=Mo.shift();)try{Vt(e)}catch(n){ne.__e(n,{__:(e=e.__P)&&e.__v})}for(;e=ca.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(Vt),t.__h.some(Fo),t.__h=[]}catch(n){t.__h=[],ne.__e(n,e.__v)}}}while(Mo.length)}ne.__b=function(e){se=null,ta&&ta(e)},ne.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),aa&&aa(e,t)},ne.__r=function(e){na&&na(e),ft=0;var t=(se=e.__c).__H;t&&(Vo==se?se.__h=[]:(t.__h.some(Vt),t.__h.some(Fo),ft=0),t.__h=[],t.__.some(function(n){n.__N&&(n.__=n.__N),n.u=n.__N=void 0})),Vo=se},ne.diffed=function(e){oa&&oa(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&la(ca.push(t)),t.__H.__.some(function(n){n.u&&(n.__H=n.u)})),Vo=se=null},ne.__c=function(e,t){t.some(function(n){try{n.__h.some(Vt),n.__h=n.__h.filter(function(o){return!o.__||Fo(o)})}catch(o){n.__h=[function(){throw o}]}}),ra&&ra(e,t)},ne.unmount=function(e){sa&&sa(e);var t,n,o=e.__c;o&&o.__H&&(o.__H.__.some(function(r){try{if(r.__P&&r.__c){if(n===void 0){for(n=e.__;n&&(!n.__c||!n.__c.__P);)n=n.__;n=n&&n.__c}r.__P=n,la(Mo.push(r))}else Vt(r)}catch(s){t=s}}),o.__H=void 0,t&&ne.__e(t,o.__v))};var ia=typeof requestAnimationFrame=="function";function Ku(e){var t,n=function(){clearTimeout(o),ia&&cancelAnimationFrame(t),setTimeout(e)},o=setTimeout(n,35);ia&&(t=requestAnimationFrame(n))}function la(e){e!=1&&ea==ne.requestAnimationFrame||((ea=ne.requestAnimationFrame)||Ku)(Zu)}function Vt(e){var t=se,n=e.__c;typeof n=="function"&&(e.__c=void 0,n()),se=t}function Fo(e){var t=se;e.__c=e.__(),se=t}function Wo(e,t){return!e||e.length!=t.length||t.some(function(n,o){return!Oo(n,e[o])})}function ua(e,t){return typeof t=="function"?t(e):t}var _;(function(e){e[e.Canceled=1]="Canceled",e[e.Unknown=2]="Unknown",e[e.InvalidArgument=3]="InvalidArgument",e[e.DeadlineExceeded=4]="DeadlineExceeded",e[e.NotFound=5]="NotFound",e[e.AlreadyExists=6]="AlreadyExists",e[e.PermissionDenied=7]="PermissionDenied",e[e.ResourceExhausted=8]="ResourceExhausted",e[e.FailedPrecondition=9]="FailedPrecondition",e[e.Aborted=10]="Aborted",e[e.OutOfRange=11]="OutOfRange",e[e.Unimplemented=12]="Unimplemented",e[e.Internal=13]="Internal",e[e.Unavailable=14]="Unavailable",e[e.DataLoss=15]="DataLoss",e[e.Unauthenticated=16]="Unauthenticated"})(_||(_={}));function Ot(e,t){return e!==null&&typeof e=="object"&&"$typeName"in e&&typeof e.$typeName=="string"?t===void 0?!0:t.typeName===e.$typeName:!1}var g;(function(e){e[e.DOUBLE=1]="DOUBLE",e[e.FLOAT=2]="FLOAT",e[e.INT64=3]="INT64",e[e.UINT64=4]="UINT64",e[e.INT32=5]="INT32",e[e.FIXED64=6]="FIXED64",e[e.FIXED32=7]="FIXED32",e[e.BOOL=8]="BOOL",e[e.STRING=9]="STRING",e[e.BYTES=12]="BYTES",e[e.UINT32=13]="UINT32",e[e.SFIXED32=15]="SFIXED32",e[e.SFIXED64=16]="SFIXED64",e[e.SINT32=17]="SINT32",e[e.SINT64=18]="SINT64"})(g||(g={}));function pa(){let e=this.buf,t=this.pos,n=0,o=0;for(let s=0;s<28;s+=7){let a=e[t++];if(n|=(a&127)<<s,(a&128)==0){this.pos=t,this.assertBounds(),this.varint64Lo=n,this.varint64Hi=o;return}}let r=e[t++];if(n|=(r&15)<<28,o=(r&112)>>4,(r&128)==0){this.pos=t,this.assertBounds(),this.varint64Lo=n,this.varint64Hi=o;return}for(let s=3;s<=31;s+=7){let a=e[t++];if(o|=(a&127)<<s,(a&128)==0){this.pos=t,this.assertBounds(),this.varint64Lo=n,this.varint64Hi=o;return}}throw new Error("invalid varint")}var yn=4294967296;function Uo(e){let t=e[0]==="-";t&&(e=e.slice(1));let n=1e6,o=0,r=0;function s(a,l){let c=Number(e.slice(a,l));r*=n,o=o*n+c,o>=yn&&(r=r+(o/yn|0),o=o%yn)}return s(-24,-18),s(-18,-12),s(-12,-6),s(-6),t?ma(o,r):Do(o,r)}function fa(e,t){let n=Do(e,t),o=n.hi&2147483648;o&&(n=ma(n.lo,n.hi));let r=Bo(n.lo,n.hi);return o?"-"+r:r}function Bo(e,t){if({lo:e,hi:t}=ju(e,t),t<=2097151)return String(yn*t+e);let n=e&16777215,o=(e>>>24|t<<8)&16777215,r=t>>16&65535,s=n+o*6777216+r*6710656,a=o+r*8147497,l=r*2,c=1e7;return s>=c&&(a+=Math.floor(s/c),s%=c),a>=c&&(l+=Math.floor(a/c),a%=c),l.toString()+da(a)+da(s)}function ju(e,t){return{lo:e>>>0,hi:t>>>0}}function Do(e,t){return{lo:e|0,hi:t|0}}function ma(e,t){return t=~t,e?e=~e+1:t+=1,Do(e,t)}var da=e=>{let t=String(e);return"0000000".slice(t.length)+t};function ha(e,t){if(e>>>0<128){t.push(e);return}if(e>=0){for(;e>127;)t.push(e&127|128),e=e>>>7;t.push(e)}else{for(let n=0;n<9;n++)t.push(e&127|128),e=e>>7;t.push(1)}}function ga(){let e=this.buf[this.pos++];if((e&128)===0)return this.assertBounds(),e;let t=e&127;if(e=this.buf[this.pos++],t|=(e&127)<<7,(e&128)===0)return this.assertBounds(),t;if(e=this.buf[this.pos++],t|=(e&127)<<14,(e&128)===0)return this.assertBounds(),t;if(e=this.buf[this.pos++],t|=(e&127)<<21,(e&128)===0)return this.assertBounds(),t;e=this.buf[this.pos++],t|=(e&15)<<28;for(let n=5;(e&128)!==0&&n<10;n++)e=this.buf[this.pos++];if((e&128)!==0)throw new Error("invalid varint");return this.assertBounds(),t>>>0}var D=$u();function $u(){let e=new DataView(new ArrayBuffer(8));if(typeof BigInt=="function"&&typeof e.getBigInt64=="function"&&typeof e.getBigUint64=="function"&&typeof e.setBigInt64=="function"&&typeof e.setBigUint64=="function"&&(!!globalThis.Deno||!!globalThis.Bun||typeof process!="object"||typeof process.env!="object"||process.env.BUF_BIGINT_DISABLE!=="1")){let n=BigInt("-9223372036854775808"),o=BigInt("9223372036854775807"),r=BigInt("0"),s=BigInt("18446744073709551615");return{zero:BigInt(0),supported:!0,parse(a){let l=typeof a=="bigint"?a:BigInt(a);if(l>o||l<n)throw new Error(`invalid int64: ${a}`);return l},uParse(a){let l=typeof a=="bigint"?a:BigInt(a);if(l>s||l<r)throw new Error(`invalid uint64: ${a}`);return l},enc(a){return e.setBigInt64(0,this.parse(a),!0),{lo:e.getInt32(0,!0),hi:e.getInt32(4,!0)}},uEnc(a){return e.setBigInt64(0,this.uParse(a),!0),{lo:e.getInt32(0,!0),hi:e.getInt32(4,!0)}},dec(a,l){return e.setInt32(0,a,!0),e.setInt32(4,l,!0),e.getBigInt64(0,!0)},uDec(a,l){return e.setInt32(0,a,!0),e.setInt32(4,l,!0),e.getBigUint64(0,!0)}}}return{zero:"0",supported:!1,parse(n){return typeof n!="string"&&(n=n.toString()),ba(n),n},uParse(n){return typeof n!="string"&&(n=n.toString()),ya(n),n},enc(n){return typeof n!="string"&&(n=n.toString()),ba(n),Uo(n)},uEnc(n){return typeof n!="string"&&(n=n.toString()),ya(n),Uo(n)},dec(n,o){return fa(n,o)},uDec(n,o){return Bo(n,o)}}}function ba(e){if(!/^-?[0-9]+$/.test(e))throw new Error("invalid int64: "+e)}function ya(e){if(!/^[0-9]+$/.test(e))throw new Error("invalid uint64: "+e)}function de(e,t){switch(e){case g.STRING:return"";case g.BOOL:return!1;case g.DOUBLE:case g.FLOAT:return 0;case g.INT64:case g.UINT64:case g.SFIXED64:case g.FIXED64:case g.SINT64:return t?"0":D.zero;case g.BYTES:return new Uint8Array(0);default:return 0}}function wa(e,t){switch(e){case g.BOOL:return t===!1;case g.STRING:return t==="";case g.BYTES:return t instanceof Uint8Array&&!t.byteLength;case g.DOUBLE:case g.FLOAT:return Object.is(t,0);default:return t==0}}var va=2,ae=Symbol.for("reflect unsafe local");function Ea(e,t){let n=e[t.localName].case;return n===void 0?n:t.fields.find(o=>o.localName===n)}function ka(e,t){let n=t.localName;if(t.oneof)return e[t.oneof.localName].case===n;if(t.presence!=va)return e[n]!==void 0&&Object.prototype.hasOwnProperty.call(e,n);switch(t.fieldKind){case"list":return e[n].length>0;case"map":return Object.keys(e[n]).length>0;case"scalar":return!wa(t.scalar,e[n]);case"enum":return e[n]!==t.enum.values[0].number}throw new Error("message field with implicit presence")}function rt(e,t){return Object.prototype.hasOwnProperty.call(e,t)&&e[t]!==void 0}function xa(e,t){if(t.oneof){let n=e[t.oneof.localName];return n.case===t.localName?n.value:void 0}return e[t.localName]}function Sa(e,t,n){t.oneof?e[t.oneof.localName]={case:t.localName,value:n}:e[t.localName]=n}function ue(e,t,n){t==="__proto__"?Object.defineProperty(e,"__proto__",{value:n,writable:!0,enumerable:!0,configurable:!0}):e[t]=n}function Na(e,t){return Object.prototype.hasOwnProperty.call(e,t)?e[t]:void 0}function Aa(e,t){let n=t.localName;if(t.oneof){let o=t.oneof.localName;e[o].case===n&&(e[o]={case:void 0})}else if(t.presence!=va)delete e[n];else switch(t.fieldKind){case"map":e[n]={};break;case"list":e[n]=[];break;case"enum":e[n]=t.enum.values[0].number;break;case"scalar":e[n]=de(t.scalar,t.longAsString);break}}function Re(e){return e!==null&&typeof e=="object"&&!Array.isArray(e)}function Mt(e,t){var n,o,r,s;if(Re(e)&&ae in e&&"add"in e&&"field"in e&&typeof e.field=="function"){if(t!==void 0){let a=t,l=e.field();return a.listKind==l.listKind&&a.scalar===l.scalar&&((n=a.message)===null||n===void 0?void 0:n.typeName)===((o=l.message)===null||o===void 0?void 0:o.typeName)&&((r=a.enum)===null||r===void 0?void 0:r.typeName)===((s=l.enum)===null||s===void 0?void 0:s.typeName)}return!0}return!1}function Ft(e,t){var n,o,r,s;if(Re(e)&&ae in e&&"has"in e&&"field"in e&&typeof e.field=="function"){if(t!==void 0){let a=t,l=e.field();return a.mapKey===l.mapKey&&a.mapKind==l.mapKind&&a.scalar===l.scalar&&((n=a.message)===null||n===void 0?void 0:n.typeName)===((o=l.message)===null||o===void 0?void 0:o.typeName)&&((r=a.enum)===null||r===void 0?void 0:r.typeName)===((s=l.enum)===null||s===void 0?void 0:s.typeName)}return!0}return!1}function Wt(e,t){return Re(e)&&ae in e&&"desc"in e&&Re(e.desc)&&e.desc.kind==="message"&&(t===void 0||e.desc.typeName==t.typeName)}function _a(e){return Ia(e.$typeName)}function ve(e){let t=e.fields[0];return Ia(e.typeName)&&t!==void 0&&t.fieldKind=="scalar"&&t.name=="value"&&t.number==1}function wn(e){switch(e.typeName){case"google.protobuf.Any":case"google.protobuf.Timestamp":case"google.protobuf.Duration":case"google.protobuf.FieldMask":case"google.protobuf.Struct":case"google.protobuf.Value":case"google.protobuf.ListValue":return!0;default:return ve(e)}}var Xu=new Set(["google.protobuf.DoubleValue","google.protobuf.FloatValue","google.protobuf.Int64Value","google.protobuf.UInt64Value","google.protobuf.Int32Value","google.protobuf.UInt32Value","google.protobuf.BoolValue","google.protobuf.StringValue","google.protobuf.BytesValue"]);function Ia(e){return Xu.has(e)}var Ju=999,Hu=998,Ra=2;function ee(e,t){return Ot(t,e)?t:Ca(e)(t)}var Ta=new WeakMap;function Ca(e){let t=Ta.get(e);return t===void 0&&(t=zu(e),Ta.set(e,t)),t}var Yo=0,Pa=1,La=2,Ga=3;function zu(e){let t=e.typeName,{properties:n,prototype:o}=qu(e);return r=>{let s;o!==void 0?(s=Object.create(o),s.$typeName=t):s={$typeName:t};for(let a=0;a<n.length;a++){let l=n[a],c=l.name,d=r?.[c];switch(l.kind){case Yo:d!=null?s[c]=l.convert!==void 0?l.convert(d):d:l.constant!==void 0&&(s[c]=l.constant);break;case Pa:s[c]=l.convert!==void 0&&Array.isArray(d)?d.map(l.convert):d??[];break;case La:if(l.convert===void 0||!Re(d))s[c]=d??{};else{let u={},f=Object.keys(d);for(let m=0;m<f.length;m++)ue(u,f[m],l.convert(d[f[m]]));s[c]=u}break;case Ga:{let u=d;if(u?.case!=null){let f=l.convert.get(u.case);if(f!==void 0){s[c]={case:u.case,value:f(u.value)};break}}s[c]={case:void 0};break}}}return s}}function qu(e){var t,n;let o=[],r={},s=ed(e);for(let a of e.members){let l=a.localName;if(a.kind=="oneof"){o.push({name:l,kind:Ga,constant:void 0,convert:Qu(a)});continue}switch(a.fieldKind){case"message":{o.push({name:l,kind:Yo,constant:void 0,convert:vn(a)});break}case"list":{o.push({name:l,kind:Pa,constant:void 0,convert:a.listKind=="message"?(t=vn(a))!==null&&t!==void 0?t:(c=>c):a.scalar==g.BYTES?Ut:void 0});break}case"map":{o.push({name:l,kind:La,constant:void 0,convert:a.mapKind=="message"?(n=vn(a))!==null&&n!==void 0?n:(c=>c):a.scalar==g.BYTES?Ut:void 0});break}default:{let c=td(a);o.push({name:l,kind:Yo,constant:a.presence==Ra?c:void 0,convert:a.fieldKind=="scalar"&&a.scalar==g.BYTES?Ut:void 0}),s&&(r[l]=c);break}}}return{properties:o,prototype:s?r:void 0}}function Qu(e){let t=new Map;for(let n of e.fields){let o;n.fieldKind=="message"?o=vn(n):n.fieldKind=="scalar"&&n.scalar==g.BYTES&&(o=Ut),t.set(n.localName,o??(r=>r))}return t}function vn(e){if(e.fieldKind=="message"&&!e.oneof&&ve(e.message))return e.message.fields[0].scalar==g.BYTES?Ut:void 0;if(e.message.typeName=="google.protobuf.Struct"&&e.parent.typeName!=="google.protobuf.Value")return;let t=e.message,n;return o=>!Re(o)||Ot(o,t)?o:(n??(n=Ca(t)),n(o))}function Ut(e){return Array.isArray(e)?new Uint8Array(e):e}function ed(e){switch(e.file.edition){case Ju:return!1;case Hu:return!0;default:return e.fields.some(t=>t.presence!=Ra&&t.fieldKind!="message"&&!t.oneof)}}function td(e){let t=e.getDefaultValue();return t!==void 0?e.fieldKind=="scalar"&&e.longAsString?t.toString():t:e.fieldKind=="scalar"?de(e.scalar,e.longAsString):e.enum.values[0].number}var nd=["FieldValueInvalidError","FieldListRangeError","ForeignFieldError"],Y=class extends Error{constructor(t,n,o="FieldValueInvalidError"){super(n),this.name=o,this.field=()=>t}};function Va(e){return e instanceof Error&&nd.includes(e.name)&&"field"in e&&typeof e.field=="function"}var Zo;function od(e){var t;Zo=Object.assign(Object.assign({},e),{encodeUtf8Into:(t=e.encodeUtf8Into)!==null&&t!==void 0?t:Ko(e.encodeUtf8.bind(e))})}function Bt(){if(!Zo){let e=globalThis;if(!e.TextEncoder||!e.TextDecoder)throw new Error("encoding API missing: install TextEncoder and TextDecoder on globalThis");let t=new e.TextEncoder,n=new e.TextDecoder("utf-8",{ignoreBOM:!0}),o,r={encodeUtf8(a){return t.encode(a)},decodeUtf8(a,l){return l?(o||(o=new e.TextDecoder("utf-8",{fatal:!0,ignoreBOM:!0})),o.decode(a)):n.decode(a)},checkUtf8(a){try{return encodeURIComponent(a),!0}catch{return!1}}};t.encodeInto&&(r.encodeUtf8Into=t.encodeInto.bind(t));let s=String.prototype.isWellFormed;s&&(r.checkUtf8=a=>s.call(a)),od(r)}return Zo}function Ko(e){return(t,n)=>{let o=e(t);return n.set(o),{written:o.byteLength}}}var H;(function(e){e[e.Varint=0]="Varint",e[e.Bit64=1]="Bit64",e[e.LengthDelimited=2]="LengthDelimited",e[e.StartGroup=3]="StartGroup",e[e.EndGroup=4]="EndGroup",e[e.Bit32=5]="Bit32"})(H||(H={}));var Xo=4294967295,Jo=2147483647,Ho=-2147483648,mt=class{constructor(t){this.stackPos=[],this.encodeUtf8Into=t?Ko(t):Bt().encodeUtf8Into,this.buffer=Ma,this.viewCache=sd,this.pos=0}ensureCapacity(t){let n=this.pos+t;if(n>this.buffer.length){let o=this.buffer.length||rd;for(;o<n;)o*=2;let r=new Uint8Array(o);this.pos>0&&r.set(this.buffer),this.buffer=r}}view(){let t=this.buffer,n=this.viewCache;if(n.byteLength===t.byteLength)return n;let o=new DataView(t.buffer);return this.viewCache=o,o}finish(){let t=this.buffer.slice(0,this.pos);return this.pos=0,this.stackPos=[],t}fork(){return this.stackPos.push(this.pos),this.ensureCapacity(Dt),this.buffer[this.pos++]=0,this}join(){let t=this.stackPos.pop();if(t===void 0)throw new Error("invalid state, fork stack empty");let n=this.pos-t-Dt,o=jo(n);return o>Dt&&(this.ensureCapacity(o-Dt),this.buffer.copyWithin(t+o,t+Dt,this.pos)),this.pos=t,this.uint32(n),this.pos+=n,this}tag(t,n){return this.uint32((t<<3|n)>>>0)}raw(t){return this.ensureCapacity(t.length),this.buffer.set(t,this.pos),this.pos+=t.length,this}uint32(t){if(Oa(t),this.ensureCapacity(5),t<128)return this.buffer[this.pos++]=t,this;for(;t>127;)this.buffer[this.pos++]=t&127|128,t>>>=7;return this.buffer[this.pos++]=t,this}int32(t){if($o(t),t>=0)return this.uint32(t);this.ensureCapacity(10);for(let n=0;n<9;n++)this.buffer[this.pos++]=t&127|128,t>>=7;return this.buffer[this.pos++]=1,this}bool(t){return this.ensureCapacity(1),this.buffer[this.pos++]=t?1:0,this}bytes(t){return this.uint32(t.byteLength),this.raw(t)}string(t){typeof t!="string"&&(t=String(t));let n=t.length;if(n<=Fa){this.ensureCapacity(n+1);let c=this.buffer,d=this.pos;c[d++]=n;let u=0;for(;u<n;u++){let f=t.charCodeAt(u);if(f>127)break;c[d++]=f}if(u==n)return this.pos=d,this}this.ensureCapacity(n*3+5);let o=jo(n),r=this.buffer,s=this.pos,{written:a}=this.encodeUtf8Into(t,r.subarray(s+o)),l=jo(a);return l!=o&&r.copyWithin(s+l,s+o,s+o+a),this.uint32(a),this.pos+=a,this}float(t){return ad(t),this.ensureCapacity(4),this.view().setFloat32(this.pos,t,!0),this.pos+=4,this}double(t){return this.ensureCapacity(8),this.view().setFloat64(this.pos,t,!0),this.pos+=8,this}fixed32(t){return Oa(t),this.ensureCapacity(4),this.view().setUint32(this.pos,t,!0),this.pos+=4,this}sfixed32(t){return $o(t),this.ensureCapacity(4),this.view().setInt32(this.pos,t,!0),this.pos+=4,this}sint32(t){return $o(t),this.uint32((t<<1^t>>31)>>>0)}sfixed64(t){let n=D.enc(t);this.ensureCapacity(8);let o=this.view();return o.setInt32(this.pos,n.lo,!0),o.setInt32(this.pos+4,n.hi,!0),this.pos+=8,this}fixed64(t){let n=D.uEnc(t);this.ensureCapacity(8);let o=this.view();return o.setInt32(this.pos,n.lo,!0),o.setInt32(this.pos+4,n.hi,!0),this.pos+=8,this}int64(t){let n=D.enc(t);return this.writeVarint64(n.lo,n.hi)}sint64(t){let n=D.enc(t),o=n.hi>>31,r=n.lo<<1^o,s=(n.hi<<1|n.lo>>>31)^o;return this.writeVarint64(r,s)}uint64(t){let n=D.uEnc(t);return this.writeVarint64(n.lo,n.hi)}writeVarint64(t,n){this.ensureCapacity(10);let o=this.buffer,r=this.pos;for(let l=0;l<28;l=l+7){let c=t>>>l,d=!(!(c>>>7)&&n==0);if(o[r++]=(d?c|128:c)&255,!d)return this.pos=r,this}let s=t>>>28&15|(n&7)<<4,a=n>>3!=0;if(o[r++]=(a?s|128:s)&255,!a)return this.pos=r,this;for(let l=3;l<31;l=l+7){let c=n>>>l,d=!!(c>>>7);if(o[r++]=(d?c|128:c)&255,!d)return this.pos=r,this}return o[r++]=n>>>31&1,this.pos=r,this}},rd=128,Dt=1,Ma=new Uint8Array(0),sd=new DataView(Ma.buffer),Fa=32;function jo(e){return e<128?1:e<16384?2:e<2097152?3:e<268435456?4:5}var Me=class{constructor(t,n=Bt().decodeUtf8){this.decodeUtf8=n,this.varint64Lo=0,this.varint64Hi=0,this.varint64=pa,this.uint32=ga,this.buf=t,this.len=t.length,this.pos=0,this.view=new DataView(t.buffer,t.byteOffset,t.byteLength)}tag(){let t=this.pos,n=this.uint32(),o=this.pos-t;if(o>5||o==5&&this.buf[this.pos-1]>15)throw new Error("illegal tag: varint overflows uint32");let r=n>>>3,s=n&7;if(r<=0||s>5)throw new Error("illegal tag: field no "+r+" wire type "+s);return[r,s]}skip(t,n,o=100){let r=this.pos;switch(t){case H.Varint:for(;this.buf[this.pos++]&128;);break;case H.Bit64:this.pos+=4;case H.Bit32:this.pos+=4;break;case H.LengthDelimited:let s=this.uint32();this.pos+=s;break;case H.StartGroup:if(o<=0)throw new Error("maximum recursion depth reached");for(;;){let[a,l]=this.tag();if(l===H.EndGroup){if(n!==void 0&&a!==n)throw new Error("invalid end group tag");break}this.skip(l,a,o-1)}break;default:throw new Error("cant skip wire type "+t)}return this.assertBounds(),this.buf.subarray(r,this.pos)}assertBounds(){if(this.pos>this.len)throw new RangeError("premature EOF")}int32(){return this.uint32()|0}sint32(){let t=this.uint32();return t>>>1^-(t&1)}int64(){return this.varint64(),D.dec(this.varint64Lo,this.varint64Hi)}uint64(){return this.varint64(),D.uDec(this.varint64Lo,this.varint64Hi)}sint64(){this.varint64();let t=this.varint64Lo,n=this.varint64Hi,o=-(t&1);return t=(t>>>1|(n&1)<<31)^o,n=n>>>1^o,D.dec(t,n)}bool(){let t=this.buf[this.pos];return t<128?(this.pos++,t!==0):(this.varint64(),this.varint64Lo!==0||this.varint64Hi!==0)}fixed32(){return this.view.getUint32((this.pos+=4)-4,!0)}sfixed32(){return this.view.getInt32((this.pos+=4)-4,!0)}fixed64(){return D.uDec(this.sfixed32(),this.sfixed32())}sfixed64(){return D.dec(this.sfixed32(),this.sfixed32())}float(){return this.view.getFloat32((this.pos+=4)-4,!0)}double(){return this.view.getFloat64((this.pos+=8)-8,!0)}bytes(){let t=this.uint32(),n=this.pos;return this.pos+=t,this.assertBounds(),this.buf.subarray(n,n+t)}string(t){let n=this.uint32(),o=this.pos;this.pos+=n,this.assertBounds();let r=this.buf;if(n<=Fa){let s=new Array(n);for(let a=0;a<n;a++){let l=r[o+a];if(l>127)return this.decodeUtf8(r.subarray(o,this.pos),t);s[a]=l}return String.fromCharCode.apply(String,s)}return this.decodeUtf8(r.subarray(o,this.pos),t)}};function $o(e){if(typeof e=="string")e=Number(e);else if(typeof e!="number")throw new Error("invalid int32: "+typeof e);if(!Number.isInteger(e)||e>Jo||e<Ho)throw new Error("invalid int32: "+e)}function Oa(e){if(typeof e=="string")e=Number(e);else if(typeof e!="number")throw new Error("invalid uint32: "+typeof e);if(!Number.isInteger(e)||e>Xo||e<0)throw new Error("invalid uint32: "+e)}function ad(e){if(typeof e=="string"){let t=e;if(e=Number(e),Number.isNaN(e)&&t!=="NaN")throw new Error("invalid float32: "+t)}else if(typeof e!="number")throw new Error("invalid float32: "+typeof e);if(!Number.isFinite(Math.fround(e))&&Number.isFinite(e))throw new Error("invalid float32: "+e)}function En(e,t){let n=e.fieldKind=="list"?Mt(t,e):e.fieldKind=="map"?Ft(t,e):qo(e,t);if(n===!0)return;let o;switch(e.fieldKind){case"list":o=`expected ${Ba(e)}, got ${oe(t)}`;break;case"map":o=`expected ${Da(e)}, got ${oe(t)}`;break;default:o=Ne(e,t,n)}return new Y(e,o)}function zo(e,t,n){let o=qo(e,n);if(o!==!0)return new Y(e,`list item #${t+1}: ${Ne(e,n,o)}`)}function Wa(e,t,n){let o=Ye(e.mapKey)(t);if(o!==!0)return new Y(e,`invalid map key: ${Ne({scalar:e.mapKey},t,o)}`);let r=qo(e,n);if(r!==!0)return new Y(e,`map entry ${oe(t)}: ${Ne(e,n,r)}`)}function qo(e,t){return e.scalar!==void 0?Ye(e.scalar)(t):e.enum!==void 0?e.enum.open?Ye(g.INT32)(t):e.enum.values.some(n=>n.number===t):Wt(t,e.message)}function Ye(e){switch(e){case g.DOUBLE:return t=>typeof t=="number";case g.FLOAT:return t=>typeof t!="number"?!1:!Number.isFinite(Math.fround(t))&&Number.isFinite(t)?`${t.toFixed()} out of range`:!0;case g.INT32:case g.SFIXED32:case g.SINT32:return t=>typeof t!="number"||!Number.isInteger(t)?!1:t>Jo||t<Ho?`${t.toFixed()} out of range`:!0;case g.FIXED32:case g.UINT32:return t=>typeof t!="number"||!Number.isInteger(t)?!1:t>Xo||t<0?`${t.toFixed()} out of range`:!0;case g.BOOL:return t=>typeof t=="boolean";case g.STRING:return t=>typeof t!="string"?!1:Bt().checkUtf8(t)||"invalid UTF8";case g.BYTES:return t=>t instanceof Uint8Array;case g.INT64:case g.SFIXED64:case g.SINT64:return t=>{if(typeof t=="bigint"||typeof t=="number"||typeof t=="string"&&t.length>0)try{return D.parse(t),!0}catch{return`${t} out of range`}return!1};case g.FIXED64:case g.UINT64:return t=>{if(typeof t=="bigint"||typeof t=="number"||typeof t=="string"&&t.length>0)try{return D.uParse(t),!0}catch{return`${t} out of range`}return!1}}}function Ne(e,t,n){return n=typeof n=="string"?`: ${n}`:`, got ${oe(t)}`,e.scalar!==void 0?`expected ${id(e.scalar)}`+n:e.enum!==void 0?`expected ${e.enum.toString()}`+n:`expected ${Ua(e.message)}`+n}function oe(e){switch(typeof e){case"object":return e===null?"null":e instanceof Uint8Array?`Uint8Array(${e.length})`:Array.isArray(e)?`Array(${e.length})`:Mt(e)?Ba(e.field()):Ft(e)?Da(e.field()):Wt(e)?Ua(e.desc):Ot(e)?`message ${e.$typeName}`:"object";case"string":return e.length>30?"string":`"${e.split('"').join('\\"')}"`;case"boolean":return String(e);case"number":return String(e);case"bigint":return String(e)+"n";default:return typeof e}}function Ua(e){return`ReflectMessage (${e.typeName})`}function Ba(e){switch(e.listKind){case"message":return`ReflectList (${e.message.toString()})`;case"enum":return`ReflectList (${e.enum.toString()})`;case"scalar":return`ReflectList (${g[e.scalar]})`}}function Da(e){switch(e.mapKind){case"message":return`ReflectMap (${g[e.mapKey]}, ${e.message.toString()})`;case"enum":return`ReflectMap (${g[e.mapKey]}, ${e.enum.toString()})`;case"scalar":return`ReflectMap (${g[e.mapKey]}, ${g[e.scalar]})`}}function id(e){switch(e){case g.STRING:return"string";case g.BOOL:return"boolean";case g.INT64:case g.SINT64:case g.SFIXED64:return"bigint (int64)";case g.UINT64:case g.FIXED64:return"bigint (uint64)";case g.BYTES:return"Uint8Array";case g.DOUBLE:return"number (float64)";case g.FLOAT:return"number (float32)";case g.FIXED32:case g.UINT32:return"number (uint32)";case g.INT32:case g.SFIXED32:case g.SINT32:return"number (int32)"}}var ld=0;function he(e){if(cd(e))return{toMessage:n=>kn(n),toLocal:n=>xn(n)};if(e.fieldKind=="message"&&!e.oneof&&ve(e.message)){let n=e.message,o=n.fields[0].localName;return{toMessage:r=>{let s=ee(n);return r!==void 0&&(s[o]=r),s},toLocal:r=>r[o]}}let t=e.message;return{toMessage:n=>n===void 0?ee(t):n,toLocal:n=>n}}function cd(e){return e.message.typeName=="google.protobuf.Struct"&&e.parent.typeName!="google.protobuf.Value"}function kn(e){let t={$typeName:"google.protobuf.Struct",fields:{}};if(Re(e))for(let n of Object.keys(e))ue(t.fields,n,Za(e[n]));return t}function xn(e){let t={};for(let n of Object.keys(e.fields))ue(t,n,Ya(e.fields[n]));return t}function Ya(e){switch(e.kind.case){case"structValue":return xn(e.kind.value);case"listValue":return e.kind.value.values.map(Ya);case"nullValue":case void 0:return null;default:return e.kind.value}}function Za(e){let t={$typeName:"google.protobuf.Value",kind:{case:void 0}};switch(typeof e){case"number":t.kind={case:"numberValue",value:e};break;case"string":t.kind={case:"stringValue",value:e};break;case"boolean":t.kind={case:"boolValue",value:e};break;case"object":if(e===null)t.kind={case:"nullValue",value:ld};else if(Array.isArray(e)){let n={$typeName:"google.protobuf.ListValue",values:[]};if(Array.isArray(e))for(let o of e)n.values.push(Za(o));t.kind={case:"listValue",value:n}}else t.kind={case:"structValue",value:kn(e)};break}return t}function Xa(e,t,n=!0){return new Nn(e,t,n)}var Ka=new WeakMap,Nn=class{get sortedFields(){let t=Ka.get(this.desc);if(t)return t;let n=this.desc.fields.concat().sort((o,r)=>o.number-r.number);return Ka.set(this.desc,n),n}constructor(t,n,o=!0){this.lists=new Map,this.maps=new Map,this.check=o,this.desc=t,this.message=this[ae]=n??ee(t),this.fields=t.fields,this.oneofs=t.oneofs,this.members=t.members}findNumber(t){return this._fieldsByNumber||(this._fieldsByNumber=new Map(this.desc.fields.map(n=>[n.number,n]))),this._fieldsByNumber.get(t)}oneofCase(t){return Yt(this.message,t),Ea(this.message,t)}isSet(t){return Yt(this.message,t),ka(this.message,t)}clear(t){Yt(this.message,t),Aa(this.message,t)}get(t){Yt(this.message,t);let n=xa(this.message,t);switch(t.fieldKind){case"list":let o=this.lists.get(t);return(!o||o[ae]!==n)&&this.lists.set(t,o=new tr(t,n,this.check)),o;case"map":let r=this.maps.get(t);return(!r||r[ae]!==n)&&this.maps.set(t,r=new nr(t,n,this.check)),r;case"message":return rr(t,n,this.check);case"scalar":return n===void 0?de(t.scalar,!1):sr(t,n);case"enum":return n??t.enum.values[0].number}}set(t,n){if(Yt(this.message,t),this.check){let r=En(t,n);if(r)throw r}let o;t.fieldKind=="message"?o=or(t,n):Ft(n)||Mt(n)?o=n[ae]:o=ar(t,n),Sa(this.message,t,o)}getUnknown(){return this.message.$unknown}setUnknown(t){this.message.$unknown=t}};function Yt(e,t){if(t.parent.typeName!==e.$typeName)throw new Y(t,`cannot use ${t.toString()} with message ${e.$typeName}`,"ForeignFieldError")}var tr=class{field(){return this._field}get size(){return this._arr.length}constructor(t,n,o){this._field=t,this._arr=this[ae]=n,this.check=o}get(t){let n=this._arr[t];return n===void 0?void 0:Qo(this._field,n,this.check)}set(t,n){if(t<0||t>=this._arr.length)throw new Y(this._field,`list item #${t+1}: out of range`);if(this.check){let o=zo(this._field,t,n);if(o)throw o}this._arr[t]=ja(this._field,n)}add(t){if(this.check){let n=zo(this._field,this._arr.length,t);if(n)throw n}this._arr.push(ja(this._field,t))}clear(){this._arr.splice(0,this._arr.length)}[Symbol.iterator](){return this.values()}keys(){return this._arr.keys()}*values(){for(let t of this._arr)yield Qo(this._field,t,this.check)}*entries(){for(let t=0;t<this._arr.length;t++)yield[t,Qo(this._field,this._arr[t],this.check)]}};var nr=class{constructor(t,n,o=!0){this.obj=this[ae]=n??{},this.check=o,this._field=t}field(){return this._field}set(t,n){if(this.check){let o=Wa(this._field,t,n);if(o)throw o}return ue(this.obj,Sn(t),ud(this._field,n)),this}delete(t){let n=Sn(t),o=Object.prototype.hasOwnProperty.call(this.obj,n);return o&&delete this.obj[n],o}clear(){for(let t of Object.keys(this.obj))delete this.obj[t]}get(t){let n=Na(this.obj,Sn(t));return n!==void 0&&(n=er(this._field,n,this.check)),n}has(t){return Object.prototype.hasOwnProperty.call(this.obj,Sn(t))}*keys(){for(let t of Object.keys(this.obj))yield $a(t,this._field.mapKey)}*entries(){for(let t of Object.entries(this.obj))yield[$a(t[0],this._field.mapKey),er(this._field,t[1],this.check)]}[Symbol.iterator](){return this.entries()}get size(){return Object.keys(this.obj).length}*values(){for(let t of Object.values(this.obj))yield er(this._field,t,this.check)}forEach(t,n){for(let o of this.entries())t.call(n,o[1],o[0],this)}};function or(e,t){return Wt(t)?_a(t.message)&&!e.oneof&&e.fieldKind=="message"?t.message.value:t.desc.typeName=="google.protobuf.Struct"&&e.parent.typeName!="google.protobuf.Value"?xn(t.message):t.message:t}function rr(e,t,n){return t!==void 0&&(ve(e.message)&&!e.oneof&&e.fieldKind=="message"?t={$typeName:e.message.typeName,value:sr(e.message.fields[0],t)}:e.message.typeName=="google.protobuf.Struct"&&e.parent.typeName!="google.protobuf.Value"&&Re(t)&&(t=kn(t))),new Nn(e.message,t,n)}function ja(e,t){return e.listKind=="message"?or(e,t):ar(e,t)}function Qo(e,t,n){return e.listKind=="message"?rr(e,t,n):sr(e,t)}function ud(e,t){return e.mapKind=="message"?or(e,t):ar(e,t)}function er(e,t,n){return e.mapKind=="message"?rr(e,t,n):t}function Sn(e){return typeof e=="string"||typeof e=="number"?e:String(e)}function $a(e,t){switch(t){case g.STRING:return e;case g.INT32:case g.FIXED32:case g.UINT32:case g.SFIXED32:case g.SINT32:{let n=Number.parseInt(e);if(Number.isFinite(n))return n;break}case g.BOOL:switch(e){case"true":return!0;case"false":return!1}break;case g.UINT64:case g.FIXED64:try{return D.uParse(e)}catch{}break;default:try{return D.parse(e)}catch{}break}return e}function sr(e,t){switch(e.scalar){case g.INT64:case g.SFIXED64:case g.SINT64:"longAsString"in e&&e.longAsString&&typeof t=="string"&&(t=D.parse(t));break;case g.FIXED64:case g.UINT64:"longAsString"in e&&e.longAsString&&typeof t=="string"&&(t=D.uParse(t));break}return t}function ar(e,t){switch(e.scalar){case g.INT64:case g.SFIXED64:case g.SINT64:"longAsString"in e&&e.longAsString?t=String(t):(typeof t=="string"||typeof t=="number")&&(t=D.parse(t));break;case g.FIXED64:case g.UINT64:"longAsString"in e&&e.longAsString?t=String(t):(typeof t=="string"||typeof t=="number")&&(t=D.uParse(t));break}return t}var Ja=Uint8Array.prototype.setFromBase64;function gt(e){let t=e.length,n=t-(t+3>>2);(t&3)==0&&e[t-1]=="="&&(n-=e[t-2]=="="?2:1);let o=new Uint8Array(n),r=-1;if(Ja)try{let s=Ja.call(o,e);s.read==t&&(r=s.written)}catch{}return r<0&&(r=dd(o,e)),r==n?o:o.subarray(0,r)}function dd(e,t){let n=fd(),o=0,r=0,s,a=0;for(let l=0;l<t.length;l++){if(s=n[t.charCodeAt(l)],s===void 0)switch(t[l]){case"=":r=0;case`
`:case"\r":case"	":case" ":continue;default:throw Error("invalid base64 string")}switch(r){case 0:a=s,r=1;break;case 1:e[o++]=a<<2|(s&48)>>4,a=s,r=2;break;case 2:e[o++]=(a&15)<<4|(s&60)>>2,a=s,r=3;break;case 3:e[o++]=(a&3)<<6|s,r=0;break}}if(r==1)throw Error("invalid base64 string");return o}var Ha=Uint8Array.prototype.toBase64,pd={std:{alphabet:"base64",omitPadding:!1},std_raw:{alphabet:"base64",omitPadding:!0},url:{alphabet:"base64url",omitPadding:!0}};function ir(e,t="std"){if(Ha)return Ha.call(e,pd[t]);let n=qa(t),o=t=="std",r="",s=0,a,l=0;for(let c=0;c<e.length;c++)switch(a=e[c],s){case 0:r+=n[a>>2],l=(a&3)<<4,s=1;break;case 1:r+=n[l|a>>4],l=(a&15)<<2,s=2;break;case 2:r+=n[l|a>>6],r+=n[a&63],s=0;break}return s&&(r+=n[l],o&&(r+="=",s==1&&(r+="="))),r}var An,za,ht;function qa(e){return An||(An="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".split(""),za=An.slice(0,-2).concat("-","_")),e=="url"?za:An}function fd(){if(!ht){ht=[];let e=qa("std");for(let t=0;t<e.length;t++)ht[e[t].charCodeAt(0)]=t;ht[45]=e.indexOf("+"),ht[95]=e.indexOf("/")}return ht}function Ze(e){let t=!1,n=[];for(let o=0;o<e.length;o++){let r=e.charAt(o);switch(r){case"_":t=!0;break;case"0":case"1":case"2":case"3":case"4":case"5":case"6":case"7":case"8":case"9":n.push(r),t=!1;break;default:t&&(t=!1,r=r.toUpperCase()),n.push(r);break}}return n.join("")}function _n(e){return e.replace(/[A-Z]/g,t=>"_"+t.toLowerCase())}var md=new Set(["constructor","toString","toJSON","valueOf"]);function bt(e){return md.has(e)?e+"$":e}function Zt(e){for(let t of e.field)rt(t,"jsonName")||(t.jsonName=Ze(t.name));e.nestedType.forEach(Zt)}function Qa(e,t){let n=e.values.find(o=>o.name===t);if(!n)throw new Error(`cannot parse ${e} default value: ${t}`);return n.number}function ei(e,t){switch(e){case g.STRING:return t;case g.BYTES:{let n=hd(t);if(n===!1)throw new Error(`cannot parse ${g[e]} default value: ${t}`);return n}case g.INT64:case g.SFIXED64:case g.SINT64:return D.parse(t);case g.UINT64:case g.FIXED64:return D.uParse(t);case g.DOUBLE:case g.FLOAT:switch(t){case"inf":return Number.POSITIVE_INFINITY;case"-inf":return Number.NEGATIVE_INFINITY;case"nan":return Number.NaN;default:return parseFloat(t)}case g.BOOL:return t==="true";case g.INT32:case g.UINT32:case g.SINT32:case g.FIXED32:case g.SFIXED32:return parseInt(t,10)}}function hd(e){let t=[],n={tail:e,c:"",next(){return this.tail.length==0?!1:(this.c=this.tail[0],this.tail=this.tail.substring(1),!0)},take(o){if(this.tail.length>=o){let r=this.tail.substring(0,o);return this.tail=this.tail.substring(o),r}return!1}};for(;n.next();)switch(n.c){case"\\":if(n.next())switch(n.c){case"\\":t.push(n.c.charCodeAt(0));break;case"b":t.push(8);break;case"f":t.push(12);break;case"n":t.push(10);break;case"r":t.push(13);break;case"t":t.push(9);break;case"v":t.push(11);break;case"0":case"1":case"2":case"3":case"4":case"5":case"6":case"7":{let o=n.c,r=n.take(2);if(r===!1)return!1;let s=parseInt(o+r,8);if(Number.isNaN(s))return!1;t.push(s);break}case"x":{let o=n.c,r=n.take(2);if(r===!1)return!1;let s=parseInt(o+r,16);if(Number.isNaN(s))return!1;t.push(s);break}case"u":{let o=n.c,r=n.take(4);if(r===!1)return!1;let s=parseInt(o+r,16);if(Number.isNaN(s))return!1;let a=new Uint8Array(4);new DataView(a.buffer).setInt32(0,s,!0),t.push(a[0],a[1],a[2],a[3]);break}case"U":{let o=n.c,r=n.take(8);if(r===!1)return!1;let s=D.uEnc(o+r),a=new Uint8Array(8),l=new DataView(a.buffer);l.setInt32(0,s.lo,!0),l.setInt32(4,s.hi,!0),t.push(a[0],a[1],a[2],a[3],a[4],a[5],a[6],a[7]);break}}break;default:t.push(n.c.charCodeAt(0))}return new Uint8Array(t)}function*In(e){switch(e.kind){case"file":for(let t of e.messages)yield t,yield*In(t);yield*e.enums,yield*e.services,yield*e.extensions;break;case"message":for(let t of e.nestedMessages)yield t,yield*In(t);yield*e.nestedEnums,yield*e.nestedExtensions;break}}function Tn(e,t){return gd([e,t])}function gd(e,t){let n=bd();if(!e.length)return n;if("$typeName"in e[0]&&e[0].$typeName=="google.protobuf.FileDescriptorSet"){for(let o of e[0].file)t?.(o),ri(o,n);return n}if("$typeName"in e[0]){let a=function(l){let c=[];for(let d of l.dependency){if(n.getFile(d)!=null||s.has(d))continue;let u=r(d);if(!u)throw new Error(`Unable to resolve ${d}, imported by ${l.name}`);"kind"in u?n.addFile(u,!1,!0):(s.add(u.name),c.push(u))}return c.concat(...c.map(a))},o=e[0],r=e[1],s=new Set;for(let l of[o,...a(o)].reverse())t?.(l),ri(l,n)}else for(let o of e)for(let r of o.files)n.addFile(r);return n}function bd(){let e=new Map,t=new Map,n=new Map;return{kind:"registry",types:e,extendees:t,[Symbol.iterator](){return e.values()},get files(){return n.values()},addFile(o,r,s){if(n.set(o.proto.name,o),!r)for(let a of In(o))this.add(a);if(s)for(let a of o.dependencies)this.addFile(a,r,s)},add(o){if(o.kind=="extension"){let r=t.get(o.extendee.typeName);r||t.set(o.extendee.typeName,r=new Map),r.set(o.number,o)}e.set(o.typeName,o)},get(o){return e.get(o)},getFile(o){return n.get(o)},getMessage(o){let r=e.get(o);return r?.kind=="message"?r:void 0},getEnum(o){let r=e.get(o);return r?.kind=="enum"?r:void 0},getExtension(o){let r=e.get(o);return r?.kind=="extension"?r:void 0},getExtensionFor(o,r){var s;return(s=t.get(o.typeName))===null||s===void 0?void 0:s.get(r)},getService(o){let r=e.get(o);return r?.kind=="service"?r:void 0}}}var yd=998,wd=999,vd=9999,Ed=9,jt=10,Kt=11,kd=12,ti=14,pr=3,xd=2,ni=1,Sd=0,lr=1,oi=2,Nd=3,Ad=1,_d=2,Id=1,Td=2;var Rd=1002,ai={998:{fieldPresence:1,enumType:2,repeatedFieldEncoding:2,utf8Validation:3,messageEncoding:1,jsonFormat:2,enforceNamingStyle:2,defaultSymbolVisibility:1,enforceProtoLimits:1},999:{fieldPresence:2,enumType:1,repeatedFieldEncoding:1,utf8Validation:2,messageEncoding:1,jsonFormat:1,enforceNamingStyle:2,defaultSymbolVisibility:1,enforceProtoLimits:1},1e3:{fieldPresence:1,enumType:1,repeatedFieldEncoding:1,utf8Validation:2,messageEncoding:1,jsonFormat:1,enforceNamingStyle:2,defaultSymbolVisibility:1,enforceProtoLimits:1},1001:{fieldPresence:1,enumType:1,repeatedFieldEncoding:1,utf8Validation:2,messageEncoding:1,jsonFormat:1,enforceNamingStyle:1,defaultSymbolVisibility:2,enforceProtoLimits:1},1002:{fieldPresence:1,enumType:1,repeatedFieldEncoding:1,utf8Validation:2,messageEncoding:1,jsonFormat:1,enforceNamingStyle:3,defaultSymbolVisibility:4,enforceProtoLimits:2}};function ri(e,t){var n,o;let r={kind:"file",proto:e,deprecated:(o=(n=e.options)===null||n===void 0?void 0:n.deprecated)!==null&&o!==void 0?o:!1,edition:Gd(e),name:e.name.replace(/\.proto$/,""),dependencies:Vd(e,t),enums:[],messages:[],extensions:[],services:[],toString(){return`file ${e.name}`}},s=new Map,a={get(l){return s.get(l)},add(l){var c;Ce(((c=l.proto.options)===null||c===void 0?void 0:c.mapEntry)===!0),s.set(l.typeName,l)}};for(let l of e.enumType)ii(l,r,void 0,t);for(let l of e.messageType)li(l,r,void 0,t,a);for(let l of e.service)Cd(l,r,t);cr(r,t);for(let l of s.values())ur(l,t,a);for(let l of r.messages)ur(l,t,a),cr(l,t);t.addFile(r,!0)}function cr(e,t){switch(e.kind){case"file":for(let n of e.proto.extension){let o=dr(n,e,t);e.extensions.push(o),t.add(o)}break;case"message":for(let n of e.proto.extension){let o=dr(n,e,t);e.nestedExtensions.push(o),t.add(o)}for(let n of e.nestedMessages)cr(n,t);break}}function ur(e,t,n){let o=e.proto.oneofDecl.map(s=>Ld(s,e)),r=new Set;for(let s of e.proto.field){let a=Wd(s,o),l=dr(s,e,t,a,n);e.fields.push(l),e.field[l.localName]=l,a===void 0?e.members.push(l):(a.fields.push(l),r.has(a)||(r.add(a),e.members.push(a)))}for(let s of o.filter(a=>r.has(a)))e.oneofs.push(s);for(let s of e.nestedMessages)ur(s,t,n)}function ii(e,t,n,o){var r,s,a,l,c,d,u,f,m;let p=Od(e.name,e.value),h={kind:"enum",proto:e,deprecated:(s=(r=e.options)===null||r===void 0?void 0:r.deprecated)!==null&&s!==void 0?s:!1,file:t,parent:n,open:!0,name:e.name,typeName:Rn(e,n,t),value:{},values:[],sharedPrefix:p,toString(){return`enum ${this.typeName}`}};h.open=Yd(h),o.add(h);for(let y of e.value){let b=y.name,w={kind:"enum_value",proto:y,deprecated:(l=(a=y.options)===null||a===void 0?void 0:a.deprecated)!==null&&l!==void 0?l:!1,parent:h,name:b,localName:bt(p==null?b:b.substring(p.length)),number:y.number,jsonName:(c=Md(y))!==null&&c!==void 0?c:b,toString(){return`enum value ${h.typeName}.${b}`}};h.values.push(w),(d=(f=h.value)[m=y.number])!==null&&d!==void 0||(f[m]=w)}((u=n?.nestedEnums)!==null&&u!==void 0?u:t.enums).push(h)}function li(e,t,n,o,r){var s,a,l,c;let d={kind:"message",proto:e,deprecated:(a=(s=e.options)===null||s===void 0?void 0:s.deprecated)!==null&&a!==void 0?a:!1,file:t,parent:n,name:e.name,typeName:Rn(e,n,t),fields:[],field:{},oneofs:[],members:[],nestedEnums:[],nestedMessages:[],nestedExtensions:[],toString(){return`message ${this.typeName}`}};((l=e.options)===null||l===void 0?void 0:l.mapEntry)===!0?r.add(d):(((c=n?.nestedMessages)!==null&&c!==void 0?c:t.messages).push(d),o.add(d));for(let u of e.enumType)ii(u,t,d,o);for(let u of e.nestedType)li(u,t,d,o,r)}function Cd(e,t,n){var o,r;let s={kind:"service",proto:e,deprecated:(r=(o=e.options)===null||o===void 0?void 0:o.deprecated)!==null&&r!==void 0?r:!1,file:t,name:e.name,typeName:Rn(e,void 0,t),methods:[],method:{},toString(){return`service ${this.typeName}`}};t.services.push(s),n.add(s);for(let a of e.method){let l=Pd(a,s,n);s.methods.push(l),s.method[l.localName]=l}}function Pd(e,t,n){var o,r,s,a;let l;e.clientStreaming&&e.serverStreaming?l="bidi_streaming":e.clientStreaming?l="client_streaming":e.serverStreaming?l="server_streaming":l="unary";let c=n.getMessage(Ke(e.inputType)),d=n.getMessage(Ke(e.outputType));Ce(c,`invalid MethodDescriptorProto: input_type ${e.inputType} not found`),Ce(d,`invalid MethodDescriptorProto: output_type ${e.inputType} not found`);let u=e.name;return{kind:"rpc",proto:e,deprecated:(r=(o=e.options)===null||o===void 0?void 0:o.deprecated)!==null&&r!==void 0?r:!1,parent:t,name:u,localName:bt(u.length?bt(u[0].toLowerCase()+u.substring(1)):u),methodKind:l,input:c,output:d,idempotency:(a=(s=e.options)===null||s===void 0?void 0:s.idempotencyLevel)!==null&&a!==void 0?a:Sd,toString(){return`rpc ${t.typeName}.${u}`}}}function Ld(e,t){return{kind:"oneof",proto:e,deprecated:!1,parent:t,fields:[],name:e.name,localName:bt(Ze(e.name)),toString(){return`oneof ${t.typeName}.${this.name}`}}}function dr(e,t,n,o,r){var s,a,l;let c=r===void 0,d={kind:"field",proto:e,deprecated:(a=(s=e.options)===null||s===void 0?void 0:s.deprecated)!==null&&a!==void 0?a:!1,name:e.name,number:e.number,scalar:void 0,message:void 0,enum:void 0,presence:Ud(e,o,c,t),utf8Validation:Zd(e,t),listKind:void 0,mapKind:void 0,mapKey:void 0,delimitedEncoding:void 0,packed:void 0,longAsString:!1,getDefaultValue:void 0},u;if(c){let h=t.kind=="file"?t:t.file,y=t.kind=="file"?void 0:t,b=Rn(e,y,h);d.kind="extension",d.file=h,d.parent=y,d.oneof=void 0,d.typeName=b,d.jsonName=`[${b}]`,u=()=>`extension ${b}`;let w=n.getMessage(Ke(e.extendee));Ce(w,`invalid FieldDescriptorProto: extendee ${e.extendee} not found`),d.extendee=w}else{let h=t;Ce(h.kind=="message"),d.parent=h,d.oneof=o,d.localName=o?Ze(e.name):bt(Ze(e.name)),d.jsonName=e.jsonName,u=()=>`field ${h.typeName}.${e.name}`}Object.defineProperty(d,"toString",{value:u,writable:!0,enumerable:!0,configurable:!0});let f=e.label,m=e.type,p=(l=e.options)===null||l===void 0?void 0:l.jstype;if(f===pr){let h=m==Kt?r?.get(Ke(e.typeName)):void 0;if(h){d.fieldKind="map";let{key:y,value:b}=Dd(h);return d.mapKey=y.scalar,d.mapKind=b.fieldKind,d.message=b.message,d.delimitedEncoding=!1,d.enum=b.enum,d.scalar=b.scalar,d}switch(d.fieldKind="list",m){case Kt:case jt:d.listKind="message",d.message=n.getMessage(Ke(e.typeName)),Ce(d.message),d.delimitedEncoding=si(e,t);break;case ti:d.listKind="enum",d.enum=n.getEnum(Ke(e.typeName)),Ce(d.enum);break;default:d.listKind="scalar",d.scalar=m,d.longAsString=p==ni;break}return d.packed=Bd(e,t),d}switch(m){case Kt:case jt:d.fieldKind="message",d.message=n.getMessage(Ke(e.typeName)),Ce(d.message,`invalid FieldDescriptorProto: type_name ${e.typeName} not found`),d.delimitedEncoding=si(e,t),d.getDefaultValue=()=>{};break;case ti:{let h=n.getEnum(Ke(e.typeName));Ce(h!==void 0,`invalid FieldDescriptorProto: type_name ${e.typeName} not found`),d.fieldKind="enum",d.enum=n.getEnum(Ke(e.typeName)),d.getDefaultValue=()=>rt(e,"defaultValue")?Qa(h,e.defaultValue):void 0;break}default:{d.fieldKind="scalar",d.scalar=m,d.longAsString=p==ni,d.getDefaultValue=()=>rt(e,"defaultValue")?ei(m,e.defaultValue):void 0;break}}return d}function Gd(e){switch(e.syntax){case"":case"proto2":return yd;case"proto3":return wd;case"editions":if(e.edition===vd)return Rd;if(e.edition in ai)return e.edition;throw new Error(`${e.name}: unsupported edition`);default:throw new Error(`${e.name}: unsupported syntax "${e.syntax}"`)}}function Vd(e,t){return e.dependency.map(n=>{let o=t.getFile(n);if(!o)throw new Error(`Cannot find ${n}, imported by ${e.name}`);return o})}function Od(e,t){let n=Fd(e)+"_";for(let o of t){if(!o.name.toLowerCase().startsWith(n))return;let r=o.name.substring(n.length);if(r.length==0||/^\d/.test(r))return}return n}function Md(e){var t,n;let s;for(let a of(n=(t=e.options)===null||t===void 0?void 0:t.$unknown)!==null&&n!==void 0?n:[]){if(a.no!==998||a.wireType!==H.LengthDelimited)continue;let l=new Me(new Me(a.data).bytes());for(;l.pos<l.len;){let[c,d]=l.tag();c===1&&d===H.LengthDelimited?s=l.string():l.skip(d,c)}}return s}function Fd(e){return(e.substring(0,1)+e.substring(1).replace(/[A-Z]/g,t=>"_"+t)).toLowerCase()}function Rn(e,t,n){let o;return t?o=`${t.typeName}.${e.name}`:n.proto.package.length>0?o=`${n.proto.package}.${e.name}`:o=`${e.name}`,o}function Ke(e){return e.startsWith(".")?e.substring(1):e}function Wd(e,t){if(!rt(e,"oneofIndex")||e.proto3Optional)return;let n=t[e.oneofIndex];return Ce(n,`invalid FieldDescriptorProto: oneof #${e.oneofIndex} for field #${e.number} not found`),n}function Ud(e,t,n,o){if(e.label==xd)return Nd;if(e.label==pr)return oi;if(t||e.proto3Optional||n)return lr;let r=st("fieldPresence",{proto:e,parent:o});return r==oi&&(e.type==Kt||e.type==jt)?lr:r}function Bd(e,t){if(e.label!=pr)return!1;switch(e.type){case Ed:case kd:case jt:case Kt:return!1}let n=e.options;return n&&rt(n,"packed")?n.packed:Ad==st("repeatedFieldEncoding",{proto:e,parent:t})}function Dd(e){let t=e.fields.find(o=>o.number===1),n=e.fields.find(o=>o.number===2);return Ce(t&&t.fieldKind=="scalar"&&t.scalar!=g.BYTES&&t.scalar!=g.FLOAT&&t.scalar!=g.DOUBLE&&n&&n.fieldKind!="list"&&n.fieldKind!="map"),{key:t,value:n}}function Yd(e){var t;return Id==st("enumType",{proto:e.proto,parent:(t=e.parent)!==null&&t!==void 0?t:e.file})}function si(e,t){return e.type==jt?!0:_d==st("messageEncoding",{proto:e,parent:t})}function Zd(e,t){return Td==st("utf8Validation",{proto:e,parent:t})}function st(e,t){var n,o;let r=(n=t.proto.options)===null||n===void 0?void 0:n.features;if(r){let s=r[e];if(s!=0)return s}if("kind"in t){if(t.kind=="message")return st(e,(o=t.parent)!==null&&o!==void 0?o:t.file);let s=ai[t.edition];if(!s)throw new Error(`feature default for edition ${t.edition} not found`);return s[e]}return st(e,t.parent)}function Ce(e,t){if(!e)throw new Error(t)}function ci(e){let t=Kd(e);return t.messageType.forEach(Zt),Tn(t,()=>{}).getFile(t.name)}function Kd(e){return Object.assign(Object.create({syntax:"",edition:0}),Object.assign(Object.assign({$typeName:"google.protobuf.FileDescriptorProto",dependency:[],publicDependency:[],weakDependency:[],optionDependency:[],service:[],extension:[]},e),{messageType:e.messageType.map(ui),enumType:e.enumType.map(di)}))}function ui(e){var t,n,o,r,s,a,l,c;return Object.assign(Object.create({visibility:0}),{$typeName:"google.protobuf.DescriptorProto",name:e.name,field:(n=(t=e.field)===null||t===void 0?void 0:t.map(jd))!==null&&n!==void 0?n:[],extension:[],nestedType:(r=(o=e.nestedType)===null||o===void 0?void 0:o.map(ui))!==null&&r!==void 0?r:[],enumType:(a=(s=e.enumType)===null||s===void 0?void 0:s.map(di))!==null&&a!==void 0?a:[],extensionRange:(c=(l=e.extensionRange)===null||l===void 0?void 0:l.map(u=>Object.assign({$typeName:"google.protobuf.DescriptorProto.ExtensionRange"},u)))!==null&&c!==void 0?c:[],oneofDecl:[],reservedRange:[],reservedName:[]})}function jd(e){return Object.assign(Object.create({label:1,typeName:"",extendee:"",defaultValue:"",oneofIndex:0,jsonName:"",proto3Optional:!1}),Object.assign(Object.assign({$typeName:"google.protobuf.FieldDescriptorProto"},e),{options:e.options?$d(e.options):void 0}))}function $d(e){var t,n,o;return Object.assign(Object.create({ctype:0,packed:!1,jstype:0,lazy:!1,unverifiedLazy:!1,deprecated:!1,weak:!1,debugRedact:!1,retention:0}),Object.assign(Object.assign({$typeName:"google.protobuf.FieldOptions"},e),{targets:(t=e.targets)!==null&&t!==void 0?t:[],editionDefaults:(o=(n=e.editionDefaults)===null||n===void 0?void 0:n.map(s=>Object.assign({$typeName:"google.protobuf.FieldOptions.EditionDefault"},s)))!==null&&o!==void 0?o:[],uninterpretedOption:[]}))}function di(e){return Object.assign(Object.create({visibility:0}),{$typeName:"google.protobuf.EnumDescriptorProto",name:e.name,reservedName:[],reservedRange:[],value:e.value.map(n=>Object.assign({$typeName:"google.protobuf.EnumValueDescriptorProto"},n))})}function ge(e,t,...n){return n.reduce((o,r)=>o.nestedMessages[r],e.messages[t])}var Xd=ci({name:"google/protobuf/descriptor.proto",package:"google.protobuf",messageType:[{name:"FileDescriptorSet",field:[{name:"file",number:1,type:11,label:3,typeName:".google.protobuf.FileDescriptorProto"}],extensionRange:[{start:536e6,end:536000001}]},{name:"FileDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"package",number:2,type:9,label:1},{name:"dependency",number:3,type:9,label:3},{name:"public_dependency",number:10,type:5,label:3},{name:"weak_dependency",number:11,type:5,label:3},{name:"option_dependency",number:15,type:9,label:3},{name:"message_type",number:4,type:11,label:3,typeName:".google.protobuf.DescriptorProto"},{name:"enum_type",number:5,type:11,label:3,typeName:".google.protobuf.EnumDescriptorProto"},{name:"service",number:6,type:11,label:3,typeName:".google.protobuf.ServiceDescriptorProto"},{name:"extension",number:7,type:11,label:3,typeName:".google.protobuf.FieldDescriptorProto"},{name:"options",number:8,type:11,label:1,typeName:".google.protobuf.FileOptions"},{name:"source_code_info",number:9,type:11,label:1,typeName:".google.protobuf.SourceCodeInfo"},{name:"syntax",number:12,type:9,label:1},{name:"edition",number:14,type:14,label:1,typeName:".google.protobuf.Edition"}]},{name:"DescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"field",number:2,type:11,label:3,typeName:".google.protobuf.FieldDescriptorProto"},{name:"extension",number:6,type:11,label:3,typeName:".google.protobuf.FieldDescriptorProto"},{name:"nested_type",number:3,type:11,label:3,typeName:".google.protobuf.DescriptorProto"},{name:"enum_type",number:4,type:11,label:3,typeName:".google.protobuf.EnumDescriptorProto"},{name:"extension_range",number:5,type:11,label:3,typeName:".google.protobuf.DescriptorProto.ExtensionRange"},{name:"oneof_decl",number:8,type:11,label:3,typeName:".google.protobuf.OneofDescriptorProto"},{name:"options",number:7,type:11,label:1,typeName:".google.protobuf.MessageOptions"},{name:"reserved_range",number:9,type:11,label:3,typeName:".google.protobuf.DescriptorProto.ReservedRange"},{name:"reserved_name",number:10,type:9,label:3},{name:"visibility",number:11,type:14,label:1,typeName:".google.protobuf.SymbolVisibility"}],nestedType:[{name:"ExtensionRange",field:[{name:"start",number:1,type:5,label:1},{name:"end",number:2,type:5,label:1},{name:"options",number:3,type:11,label:1,typeName:".google.protobuf.ExtensionRangeOptions"}]},{name:"ReservedRange",field:[{name:"start",number:1,type:5,label:1},{name:"end",number:2,type:5,label:1}]}]},{name:"ExtensionRangeOptions",field:[{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"},{name:"declaration",number:2,type:11,label:3,typeName:".google.protobuf.ExtensionRangeOptions.Declaration",options:{retention:2}},{name:"features",number:50,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"verification",number:3,type:14,label:1,typeName:".google.protobuf.ExtensionRangeOptions.VerificationState",defaultValue:"UNVERIFIED",options:{retention:2}}],nestedType:[{name:"Declaration",field:[{name:"number",number:1,type:5,label:1},{name:"full_name",number:2,type:9,label:1},{name:"type",number:3,type:9,label:1},{name:"reserved",number:5,type:8,label:1},{name:"repeated",number:6,type:8,label:1}]}],enumType:[{name:"VerificationState",value:[{name:"DECLARATION",number:0},{name:"UNVERIFIED",number:1}]}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"FieldDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"number",number:3,type:5,label:1},{name:"label",number:4,type:14,label:1,typeName:".google.protobuf.FieldDescriptorProto.Label"},{name:"type",number:5,type:14,label:1,typeName:".google.protobuf.FieldDescriptorProto.Type"},{name:"type_name",number:6,type:9,label:1},{name:"extendee",number:2,type:9,label:1},{name:"default_value",number:7,type:9,label:1},{name:"oneof_index",number:9,type:5,label:1},{name:"json_name",number:10,type:9,label:1},{name:"options",number:8,type:11,label:1,typeName:".google.protobuf.FieldOptions"},{name:"proto3_optional",number:17,type:8,label:1}],enumType:[{name:"Type",value:[{name:"TYPE_DOUBLE",number:1},{name:"TYPE_FLOAT",number:2},{name:"TYPE_INT64",number:3},{name:"TYPE_UINT64",number:4},{name:"TYPE_INT32",number:5},{name:"TYPE_FIXED64",number:6},{name:"TYPE_FIXED32",number:7},{name:"TYPE_BOOL",number:8},{name:"TYPE_STRING",number:9},{name:"TYPE_GROUP",number:10},{name:"TYPE_MESSAGE",number:11},{name:"TYPE_BYTES",number:12},{name:"TYPE_UINT32",number:13},{name:"TYPE_ENUM",number:14},{name:"TYPE_SFIXED32",number:15},{name:"TYPE_SFIXED64",number:16},{name:"TYPE_SINT32",number:17},{name:"TYPE_SINT64",number:18}]},{name:"Label",value:[{name:"LABEL_OPTIONAL",number:1},{name:"LABEL_REPEATED",number:3},{name:"LABEL_REQUIRED",number:2}]}]},{name:"OneofDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"options",number:2,type:11,label:1,typeName:".google.protobuf.OneofOptions"}]},{name:"EnumDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"value",number:2,type:11,label:3,typeName:".google.protobuf.EnumValueDescriptorProto"},{name:"options",number:3,type:11,label:1,typeName:".google.protobuf.EnumOptions"},{name:"reserved_range",number:4,type:11,label:3,typeName:".google.protobuf.EnumDescriptorProto.EnumReservedRange"},{name:"reserved_name",number:5,type:9,label:3},{name:"visibility",number:6,type:14,label:1,typeName:".google.protobuf.SymbolVisibility"}],nestedType:[{name:"EnumReservedRange",field:[{name:"start",number:1,type:5,label:1},{name:"end",number:2,type:5,label:1}]}]},{name:"EnumValueDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"number",number:2,type:5,label:1},{name:"options",number:3,type:11,label:1,typeName:".google.protobuf.EnumValueOptions"}]},{name:"ServiceDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"method",number:2,type:11,label:3,typeName:".google.protobuf.MethodDescriptorProto"},{name:"options",number:3,type:11,label:1,typeName:".google.protobuf.ServiceOptions"}]},{name:"MethodDescriptorProto",field:[{name:"name",number:1,type:9,label:1},{name:"input_type",number:2,type:9,label:1},{name:"output_type",number:3,type:9,label:1},{name:"options",number:4,type:11,label:1,typeName:".google.protobuf.MethodOptions"},{name:"client_streaming",number:5,type:8,label:1,defaultValue:"false"},{name:"server_streaming",number:6,type:8,label:1,defaultValue:"false"}]},{name:"FileOptions",field:[{name:"java_package",number:1,type:9,label:1},{name:"java_outer_classname",number:8,type:9,label:1},{name:"java_multiple_files",number:10,type:8,label:1,defaultValue:"false",options:{}},{name:"java_generate_equals_and_hash",number:20,type:8,label:1,options:{deprecated:!0}},{name:"java_string_check_utf8",number:27,type:8,label:1,defaultValue:"false"},{name:"optimize_for",number:9,type:14,label:1,typeName:".google.protobuf.FileOptions.OptimizeMode",defaultValue:"SPEED"},{name:"go_package",number:11,type:9,label:1},{name:"cc_generic_services",number:16,type:8,label:1,defaultValue:"false"},{name:"java_generic_services",number:17,type:8,label:1,defaultValue:"false"},{name:"py_generic_services",number:18,type:8,label:1,defaultValue:"false"},{name:"deprecated",number:23,type:8,label:1,defaultValue:"false"},{name:"cc_enable_arenas",number:31,type:8,label:1,defaultValue:"true",options:{}},{name:"objc_class_prefix",number:36,type:9,label:1},{name:"csharp_namespace",number:37,type:9,label:1},{name:"swift_prefix",number:39,type:9,label:1},{name:"php_class_prefix",number:40,type:9,label:1},{name:"php_namespace",number:41,type:9,label:1},{name:"php_metadata_namespace",number:44,type:9,label:1},{name:"ruby_package",number:45,type:9,label:1},{name:"features",number:50,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],enumType:[{name:"OptimizeMode",value:[{name:"SPEED",number:1},{name:"CODE_SIZE",number:2},{name:"LITE_RUNTIME",number:3}]}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"MessageOptions",field:[{name:"message_set_wire_format",number:1,type:8,label:1,defaultValue:"false"},{name:"no_standard_descriptor_accessor",number:2,type:8,label:1,defaultValue:"false"},{name:"deprecated",number:3,type:8,label:1,defaultValue:"false"},{name:"map_entry",number:7,type:8,label:1},{name:"deprecated_legacy_json_field_conflicts",number:11,type:8,label:1,options:{deprecated:!0}},{name:"features",number:12,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"FieldOptions",field:[{name:"ctype",number:1,type:14,label:1,typeName:".google.protobuf.FieldOptions.CType",defaultValue:"STRING"},{name:"packed",number:2,type:8,label:1},{name:"jstype",number:6,type:14,label:1,typeName:".google.protobuf.FieldOptions.JSType",defaultValue:"JS_NORMAL"},{name:"lazy",number:5,type:8,label:1,defaultValue:"false"},{name:"unverified_lazy",number:15,type:8,label:1,defaultValue:"false"},{name:"deprecated",number:3,type:8,label:1,defaultValue:"false"},{name:"weak",number:10,type:8,label:1,defaultValue:"false",options:{deprecated:!0}},{name:"debug_redact",number:16,type:8,label:1,defaultValue:"false"},{name:"retention",number:17,type:14,label:1,typeName:".google.protobuf.FieldOptions.OptionRetention"},{name:"targets",number:19,type:14,label:3,typeName:".google.protobuf.FieldOptions.OptionTargetType"},{name:"edition_defaults",number:20,type:11,label:3,typeName:".google.protobuf.FieldOptions.EditionDefault"},{name:"features",number:21,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"feature_support",number:22,type:11,label:1,typeName:".google.protobuf.FieldOptions.FeatureSupport"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],nestedType:[{name:"EditionDefault",field:[{name:"edition",number:3,type:14,label:1,typeName:".google.protobuf.Edition"},{name:"value",number:2,type:9,label:1}]},{name:"FeatureSupport",field:[{name:"edition_introduced",number:1,type:14,label:1,typeName:".google.protobuf.Edition"},{name:"edition_deprecated",number:2,type:14,label:1,typeName:".google.protobuf.Edition"},{name:"deprecation_warning",number:3,type:9,label:1},{name:"edition_removed",number:4,type:14,label:1,typeName:".google.protobuf.Edition"},{name:"removal_error",number:5,type:9,label:1}]}],enumType:[{name:"CType",value:[{name:"STRING",number:0},{name:"CORD",number:1},{name:"STRING_PIECE",number:2}]},{name:"JSType",value:[{name:"JS_NORMAL",number:0},{name:"JS_STRING",number:1},{name:"JS_NUMBER",number:2}]},{name:"OptionRetention",value:[{name:"RETENTION_UNKNOWN",number:0},{name:"RETENTION_RUNTIME",number:1},{name:"RETENTION_SOURCE",number:2}]},{name:"OptionTargetType",value:[{name:"TARGET_TYPE_UNKNOWN",number:0},{name:"TARGET_TYPE_FILE",number:1},{name:"TARGET_TYPE_EXTENSION_RANGE",number:2},{name:"TARGET_TYPE_MESSAGE",number:3},{name:"TARGET_TYPE_FIELD",number:4},{name:"TARGET_TYPE_ONEOF",number:5},{name:"TARGET_TYPE_ENUM",number:6},{name:"TARGET_TYPE_ENUM_ENTRY",number:7},{name:"TARGET_TYPE_SERVICE",number:8},{name:"TARGET_TYPE_METHOD",number:9}]}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"OneofOptions",field:[{name:"features",number:1,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"EnumOptions",field:[{name:"allow_alias",number:2,type:8,label:1},{name:"deprecated",number:3,type:8,label:1,defaultValue:"false"},{name:"deprecated_legacy_json_field_conflicts",number:6,type:8,label:1,options:{deprecated:!0}},{name:"features",number:7,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"EnumValueOptions",field:[{name:"deprecated",number:1,type:8,label:1,defaultValue:"false"},{name:"features",number:2,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"debug_redact",number:3,type:8,label:1,defaultValue:"false"},{name:"feature_support",number:4,type:11,label:1,typeName:".google.protobuf.FieldOptions.FeatureSupport"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"ServiceOptions",field:[{name:"features",number:34,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"deprecated",number:33,type:8,label:1,defaultValue:"false"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"MethodOptions",field:[{name:"deprecated",number:33,type:8,label:1,defaultValue:"false"},{name:"idempotency_level",number:34,type:14,label:1,typeName:".google.protobuf.MethodOptions.IdempotencyLevel",defaultValue:"IDEMPOTENCY_UNKNOWN"},{name:"features",number:35,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"uninterpreted_option",number:999,type:11,label:3,typeName:".google.protobuf.UninterpretedOption"}],enumType:[{name:"IdempotencyLevel",value:[{name:"IDEMPOTENCY_UNKNOWN",number:0},{name:"NO_SIDE_EFFECTS",number:1},{name:"IDEMPOTENT",number:2}]}],extensionRange:[{start:990,end:999},{start:1e3,end:536870912}]},{name:"UninterpretedOption",field:[{name:"name",number:2,type:11,label:3,typeName:".google.protobuf.UninterpretedOption.NamePart"},{name:"identifier_value",number:3,type:9,label:1},{name:"positive_int_value",number:4,type:4,label:1},{name:"negative_int_value",number:5,type:3,label:1},{name:"double_value",number:6,type:1,label:1},{name:"string_value",number:7,type:12,label:1},{name:"aggregate_value",number:8,type:9,label:1}],nestedType:[{name:"NamePart",field:[{name:"name_part",number:1,type:9,label:2},{name:"is_extension",number:2,type:8,label:2}]}]},{name:"FeatureSet",field:[{name:"field_presence",number:1,type:14,label:1,typeName:".google.protobuf.FeatureSet.FieldPresence",options:{retention:1,targets:[4,1],editionDefaults:[{value:"EXPLICIT",edition:900},{value:"IMPLICIT",edition:999},{value:"EXPLICIT",edition:1e3}]}},{name:"enum_type",number:2,type:14,label:1,typeName:".google.protobuf.FeatureSet.EnumType",options:{retention:1,targets:[6,1],editionDefaults:[{value:"CLOSED",edition:900},{value:"OPEN",edition:999}]}},{name:"repeated_field_encoding",number:3,type:14,label:1,typeName:".google.protobuf.FeatureSet.RepeatedFieldEncoding",options:{retention:1,targets:[4,1],editionDefaults:[{value:"EXPANDED",edition:900},{value:"PACKED",edition:999}]}},{name:"utf8_validation",number:4,type:14,label:1,typeName:".google.protobuf.FeatureSet.Utf8Validation",options:{retention:1,targets:[4,1],editionDefaults:[{value:"NONE",edition:900},{value:"VERIFY",edition:999}]}},{name:"message_encoding",number:5,type:14,label:1,typeName:".google.protobuf.FeatureSet.MessageEncoding",options:{retention:1,targets:[4,1],editionDefaults:[{value:"LENGTH_PREFIXED",edition:900}]}},{name:"json_format",number:6,type:14,label:1,typeName:".google.protobuf.FeatureSet.JsonFormat",options:{retention:1,targets:[3,6,1],editionDefaults:[{value:"LEGACY_BEST_EFFORT",edition:900},{value:"ALLOW",edition:999}]}},{name:"enforce_naming_style",number:7,type:14,label:1,typeName:".google.protobuf.FeatureSet.EnforceNamingStyle",options:{retention:2,targets:[1,2,3,4,5,6,7,8,9],editionDefaults:[{value:"STYLE_LEGACY",edition:900},{value:"STYLE2024",edition:1001},{value:"STYLE2026",edition:1002}]}},{name:"default_symbol_visibility",number:8,type:14,label:1,typeName:".google.protobuf.FeatureSet.VisibilityFeature.DefaultSymbolVisibility",options:{retention:2,targets:[1],editionDefaults:[{value:"EXPORT_ALL",edition:900},{value:"EXPORT_TOP_LEVEL",edition:1001},{value:"STRICT",edition:1002}]}},{name:"enforce_proto_limits",number:9,type:14,label:1,typeName:".google.protobuf.FeatureSet.ProtoLimitsFeature.EnforceProtoLimits",options:{retention:2,targets:[6,3,4,5],editionDefaults:[{value:"LEGACY_NO_EXPLICIT_LIMITS",edition:900},{value:"PROTO_LIMITS2026",edition:1002}]}}],nestedType:[{name:"VisibilityFeature",enumType:[{name:"DefaultSymbolVisibility",value:[{name:"DEFAULT_SYMBOL_VISIBILITY_UNKNOWN",number:0},{name:"EXPORT_ALL",number:1},{name:"EXPORT_TOP_LEVEL",number:2},{name:"LOCAL_ALL",number:3},{name:"STRICT",number:4}]}]},{name:"ProtoLimitsFeature",enumType:[{name:"EnforceProtoLimits",value:[{name:"PROTO_LIMITS_UNKNOWN",number:0},{name:"LEGACY_NO_EXPLICIT_LIMITS",number:1},{name:"PROTO_LIMITS2026",number:2}]}]}],enumType:[{name:"FieldPresence",value:[{name:"FIELD_PRESENCE_UNKNOWN",number:0},{name:"EXPLICIT",number:1},{name:"IMPLICIT",number:2},{name:"LEGACY_REQUIRED",number:3}]},{name:"EnumType",value:[{name:"ENUM_TYPE_UNKNOWN",number:0},{name:"OPEN",number:1},{name:"CLOSED",number:2}]},{name:"RepeatedFieldEncoding",value:[{name:"REPEATED_FIELD_ENCODING_UNKNOWN",number:0},{name:"PACKED",number:1},{name:"EXPANDED",number:2}]},{name:"Utf8Validation",value:[{name:"UTF8_VALIDATION_UNKNOWN",number:0},{name:"VERIFY",number:2},{name:"NONE",number:3}]},{name:"MessageEncoding",value:[{name:"MESSAGE_ENCODING_UNKNOWN",number:0},{name:"LENGTH_PREFIXED",number:1},{name:"DELIMITED",number:2}]},{name:"JsonFormat",value:[{name:"JSON_FORMAT_UNKNOWN",number:0},{name:"ALLOW",number:1},{name:"LEGACY_BEST_EFFORT",number:2}]},{name:"EnforceNamingStyle",value:[{name:"ENFORCE_NAMING_STYLE_UNKNOWN",number:0},{name:"STYLE2024",number:1},{name:"STYLE_LEGACY",number:2},{name:"STYLE2026",number:3}]}],extensionRange:[{start:1e3,end:9995},{start:9995,end:1e4},{start:1e4,end:10001}]},{name:"FeatureSetDefaults",field:[{name:"defaults",number:1,type:11,label:3,typeName:".google.protobuf.FeatureSetDefaults.FeatureSetEditionDefault"},{name:"minimum_edition",number:4,type:14,label:1,typeName:".google.protobuf.Edition"},{name:"maximum_edition",number:5,type:14,label:1,typeName:".google.protobuf.Edition"}],nestedType:[{name:"FeatureSetEditionDefault",field:[{name:"edition",number:3,type:14,label:1,typeName:".google.protobuf.Edition"},{name:"overridable_features",number:4,type:11,label:1,typeName:".google.protobuf.FeatureSet"},{name:"fixed_features",number:5,type:11,label:1,typeName:".google.protobuf.FeatureSet"}]}]},{name:"SourceCodeInfo",field:[{name:"location",number:1,type:11,label:3,typeName:".google.protobuf.SourceCodeInfo.Location"}],nestedType:[{name:"Location",field:[{name:"path",number:1,type:5,label:3,options:{packed:!0}},{name:"span",number:2,type:5,label:3,options:{packed:!0}},{name:"leading_comments",number:3,type:9,label:1},{name:"trailing_comments",number:4,type:9,label:1},{name:"leading_detached_comments",number:6,type:9,label:3}]}],extensionRange:[{start:536e6,end:536000001}]},{name:"GeneratedCodeInfo",field:[{name:"annotation",number:1,type:11,label:3,typeName:".google.protobuf.GeneratedCodeInfo.Annotation"}],nestedType:[{name:"Annotation",field:[{name:"path",number:1,type:5,label:3,options:{packed:!0}},{name:"source_file",number:2,type:9,label:1},{name:"begin",number:3,type:5,label:1},{name:"end",number:4,type:5,label:1},{name:"semantic",number:5,type:14,label:1,typeName:".google.protobuf.GeneratedCodeInfo.Annotation.Semantic"}],enumType:[{name:"Semantic",value:[{name:"NONE",number:0},{name:"SET",number:1},{name:"ALIAS",number:2}]}]}]}],enumType:[{name:"Edition",value:[{name:"EDITION_UNKNOWN",number:0},{name:"EDITION_LEGACY",number:900},{name:"EDITION_PROTO2",number:998},{name:"EDITION_PROTO3",number:999},{name:"EDITION_2023",number:1e3},{name:"EDITION_2024",number:1001},{name:"EDITION_2026",number:1002},{name:"EDITION_UNSTABLE",number:9999},{name:"EDITION_1_TEST_ONLY",number:1},{name:"EDITION_2_TEST_ONLY",number:2},{name:"EDITION_99997_TEST_ONLY",number:99997},{name:"EDITION_99998_TEST_ONLY",number:99998},{name:"EDITION_99999_TEST_ONLY",number:99999},{name:"EDITION_MAX",number:2147483647}]},{name:"SymbolVisibility",value:[{name:"VISIBILITY_UNSET",number:0},{name:"VISIBILITY_LOCAL",number:1},{name:"VISIBILITY_EXPORT",number:2}]}]});var Li=ge(Xd,1);var pi;(function(e){e[e.DECLARATION=0]="DECLARATION",e[e.UNVERIFIED=1]="UNVERIFIED"})(pi||(pi={}));var fi;(function(e){e[e.DOUBLE=1]="DOUBLE",e[e.FLOAT=2]="FLOAT",e[e.INT64=3]="INT64",e[e.UINT64=4]="UINT64",e[e.INT32=5]="INT32",e[e.FIXED64=6]="FIXED64",e[e.FIXED32=7]="FIXED32",e[e.BOOL=8]="BOOL",e[e.STRING=9]="STRING",e[e.GROUP=10]="GROUP",e[e.MESSAGE=11]="MESSAGE",e[e.BYTES=12]="BYTES",e[e.UINT32=13]="UINT32",e[e.ENUM=14]="ENUM",e[e.SFIXED32=15]="SFIXED32",e[e.SFIXED64=16]="SFIXED64",e[e.SINT32=17]="SINT32",e[e.SINT64=18]="SINT64"})(fi||(fi={}));var mi;(function(e){e[e.OPTIONAL=1]="OPTIONAL",e[e.REPEATED=3]="REPEATED",e[e.REQUIRED=2]="REQUIRED"})(mi||(mi={}));var hi;(function(e){e[e.SPEED=1]="SPEED",e[e.CODE_SIZE=2]="CODE_SIZE",e[e.LITE_RUNTIME=3]="LITE_RUNTIME"})(hi||(hi={}));var gi;(function(e){e[e.STRING=0]="STRING",e[e.CORD=1]="CORD",e[e.STRING_PIECE=2]="STRING_PIECE"})(gi||(gi={}));var bi;(function(e){e[e.JS_NORMAL=0]="JS_NORMAL",e[e.JS_STRING=1]="JS_STRING",e[e.JS_NUMBER=2]="JS_NUMBER"})(bi||(bi={}));var yi;(function(e){e[e.RETENTION_UNKNOWN=0]="RETENTION_UNKNOWN",e[e.RETENTION_RUNTIME=1]="RETENTION_RUNTIME",e[e.RETENTION_SOURCE=2]="RETENTION_SOURCE"})(yi||(yi={}));var wi;(function(e){e[e.TARGET_TYPE_UNKNOWN=0]="TARGET_TYPE_UNKNOWN",e[e.TARGET_TYPE_FILE=1]="TARGET_TYPE_FILE",e[e.TARGET_TYPE_EXTENSION_RANGE=2]="TARGET_TYPE_EXTENSION_RANGE",e[e.TARGET_TYPE_MESSAGE=3]="TARGET_TYPE_MESSAGE",e[e.TARGET_TYPE_FIELD=4]="TARGET_TYPE_FIELD",e[e.TARGET_TYPE_ONEOF=5]="TARGET_TYPE_ONEOF",e[e.TARGET_TYPE_ENUM=6]="TARGET_TYPE_ENUM",e[e.TARGET_TYPE_ENUM_ENTRY=7]="TARGET_TYPE_ENUM_ENTRY",e[e.TARGET_TYPE_SERVICE=8]="TARGET_TYPE_SERVICE",e[e.TARGET_TYPE_METHOD=9]="TARGET_TYPE_METHOD"})(wi||(wi={}));var vi;(function(e){e[e.IDEMPOTENCY_UNKNOWN=0]="IDEMPOTENCY_UNKNOWN",e[e.NO_SIDE_EFFECTS=1]="NO_SIDE_EFFECTS",e[e.IDEMPOTENT=2]="IDEMPOTENT"})(vi||(vi={}));var Ei;(function(e){e[e.DEFAULT_SYMBOL_VISIBILITY_UNKNOWN=0]="DEFAULT_SYMBOL_VISIBILITY_UNKNOWN",e[e.EXPORT_ALL=1]="EXPORT_ALL",e[e.EXPORT_TOP_LEVEL=2]="EXPORT_TOP_LEVEL",e[e.LOCAL_ALL=3]="LOCAL_ALL",e[e.STRICT=4]="STRICT"})(Ei||(Ei={}));var ki;(function(e){e[e.PROTO_LIMITS_UNKNOWN=0]="PROTO_LIMITS_UNKNOWN",e[e.LEGACY_NO_EXPLICIT_LIMITS=1]="LEGACY_NO_EXPLICIT_LIMITS",e[e.PROTO_LIMITS2026=2]="PROTO_LIMITS2026"})(ki||(ki={}));var xi;(function(e){e[e.FIELD_PRESENCE_UNKNOWN=0]="FIELD_PRESENCE_UNKNOWN",e[e.EXPLICIT=1]="EXPLICIT",e[e.IMPLICIT=2]="IMPLICIT",e[e.LEGACY_REQUIRED=3]="LEGACY_REQUIRED"})(xi||(xi={}));var Si;(function(e){e[e.ENUM_TYPE_UNKNOWN=0]="ENUM_TYPE_UNKNOWN",e[e.OPEN=1]="OPEN",e[e.CLOSED=2]="CLOSED"})(Si||(Si={}));var Ni;(function(e){e[e.REPEATED_FIELD_ENCODING_UNKNOWN=0]="REPEATED_FIELD_ENCODING_UNKNOWN",e[e.PACKED=1]="PACKED",e[e.EXPANDED=2]="EXPANDED"})(Ni||(Ni={}));var Ai;(function(e){e[e.UTF8_VALIDATION_UNKNOWN=0]="UTF8_VALIDATION_UNKNOWN",e[e.VERIFY=2]="VERIFY",e[e.NONE=3]="NONE"})(Ai||(Ai={}));var _i;(function(e){e[e.MESSAGE_ENCODING_UNKNOWN=0]="MESSAGE_ENCODING_UNKNOWN",e[e.LENGTH_PREFIXED=1]="LENGTH_PREFIXED",e[e.DELIMITED=2]="DELIMITED"})(_i||(_i={}));var Ii;(function(e){e[e.JSON_FORMAT_UNKNOWN=0]="JSON_FORMAT_UNKNOWN",e[e.ALLOW=1]="ALLOW",e[e.LEGACY_BEST_EFFORT=2]="LEGACY_BEST_EFFORT"})(Ii||(Ii={}));var Ti;(function(e){e[e.ENFORCE_NAMING_STYLE_UNKNOWN=0]="ENFORCE_NAMING_STYLE_UNKNOWN",e[e.STYLE2024=1]="STYLE2024",e[e.STYLE_LEGACY=2]="STYLE_LEGACY",e[e.STYLE2026=3]="STYLE2026"})(Ti||(Ti={}));var Ri;(function(e){e[e.NONE=0]="NONE",e[e.SET=1]="SET",e[e.ALIAS=2]="ALIAS"})(Ri||(Ri={}));var Ci;(function(e){e[e.EDITION_UNKNOWN=0]="EDITION_UNKNOWN",e[e.EDITION_LEGACY=900]="EDITION_LEGACY",e[e.EDITION_PROTO2=998]="EDITION_PROTO2",e[e.EDITION_PROTO3=999]="EDITION_PROTO3",e[e.EDITION_2023=1e3]="EDITION_2023",e[e.EDITION_2024=1001]="EDITION_2024",e[e.EDITION_2026=1002]="EDITION_2026",e[e.EDITION_UNSTABLE=9999]="EDITION_UNSTABLE",e[e.EDITION_1_TEST_ONLY=1]="EDITION_1_TEST_ONLY",e[e.EDITION_2_TEST_ONLY=2]="EDITION_2_TEST_ONLY",e[e.EDITION_99997_TEST_ONLY=99997]="EDITION_99997_TEST_ONLY",e[e.EDITION_99998_TEST_ONLY=99998]="EDITION_99998_TEST_ONLY",e[e.EDITION_99999_TEST_ONLY=99999]="EDITION_99999_TEST_ONLY",e[e.EDITION_MAX=2147483647]="EDITION_MAX"})(Ci||(Ci={}));var Pi;(function(e){e[e.VISIBILITY_UNSET=0]="VISIBILITY_UNSET",e[e.VISIBILITY_LOCAL=1]="VISIBILITY_LOCAL",e[e.VISIBILITY_EXPORT=2]="VISIBILITY_EXPORT"})(Pi||(Pi={}));function fr(e){return Object.assign(Object.assign({readUnknownFields:!0,recursionLimit:100},e),{depth:0})}function Pe(e,t,n){let o=ee(e);return mr(e).read(o,new Me(t),fr(n),t.byteLength),o}var Gi=new WeakMap;function mr(e){let t=Gi.get(e);return t===void 0&&(t=Jd(e)),t}function Jd(e){let t=String(e),n=new Map,o={read:Hd(t,n),readGroup:zd(t,n)};Gi.set(e,o);for(let r of e.fields)n.set(r.number,Oi(r));return o}function Hd(e,t){return(n,o,r,s)=>{var a;if(++r.depth>r.recursionLimit)throw new Error(`cannot decode ${e} from binary: maximum recursion depth of ${r.recursionLimit} reached`);let l=o.pos+s,c=(a=n.$unknown)!==null&&a!==void 0?a:[];for(;o.pos<l;){let[d,u]=o.tag(),f=t.get(d);if(f===void 0){let m=o.skip(u,d,r.recursionLimit-r.depth);r.readUnknownFields&&c.push({no:d,wireType:u,data:m});continue}f(n,o,r,u)}c.length>0&&(n.$unknown=c),r.depth--}}function zd(e,t){return(n,o,r,s)=>{var a;if(++r.depth>r.recursionLimit)throw new Error(`cannot decode ${e} from binary: maximum recursion depth of ${r.recursionLimit} reached`);let l,c,d=(a=n.$unknown)!==null&&a!==void 0?a:[];for(;o.pos<o.len&&([l,c]=o.tag(),c!=H.EndGroup);){let u=t.get(l);if(u===void 0){let f=o.skip(c,l,r.recursionLimit-r.depth);r.readUnknownFields&&d.push({no:l,wireType:c,data:f});continue}u(n,o,r,c)}if(c!=H.EndGroup||l!==s)throw new Error("invalid end group tag");d.length>0&&(n.$unknown=d),r.depth--}}function Vi(e,t,n,o,r){Oi(n)(e[ae],t,r,o)}function Oi(e){switch(e.fieldKind){case"scalar":return qd(e);case"enum":return Qd(e);case"message":return ep(e);case"list":return tp(e);case"map":return np(e)}}function qd(e){let t=Cn(e.scalar,e.utf8Validation,e.longAsString),n=e.localName;if(e.oneof){let o=e.oneof.localName;return(r,s)=>{r[o]={case:n,value:t(s)}}}return(o,r)=>{o[n]=t(r)}}function Qd(e){var t;let n=e.localName,o=(t=e.oneof)===null||t===void 0?void 0:t.localName;if(e.enum.open)return o!==void 0?(a,l)=>{a[o]={case:n,value:l.int32()}}:(a,l)=>{a[n]=l.int32()};let r=e.enum.values,s=e.number;return(a,l,c,d)=>{var u;let f=l.int32();if(r.some(m=>m.number===f))o!==void 0?a[o]={case:n,value:f}:a[n]=f;else if(c.readUnknownFields){let m=[];ha(f,m);let p=(u=a.$unknown)!==null&&u!==void 0?u:[];p.push({no:s,wireType:d,data:new Uint8Array(m)}),a.$unknown=p}}}function ep(e){let t=e.localName,{toMessage:n,toLocal:o}=he(e),r=Mi(e);if(e.oneof){let s=e.oneof.localName;return(a,l,c)=>{let d=a[s],u=n(d.case===t?d.value:void 0);r(u,l,c),a[s]={case:t,value:o(u)}}}return(s,a,l)=>{let c=n(s[t]);r(c,a,l),s[t]=o(c)}}function Mi(e){let t=mr(e.message);if(e.delimitedEncoding){let n=e.number;return(o,r,s)=>t.readGroup(o,r,s,n)}return(n,o,r)=>t.read(n,o,r,o.uint32())}function tp(e){let t=e.localName;if(e.listKind=="message"){let{toMessage:a,toLocal:l}=he(e),c=Mi(e);return(d,u,f)=>{let m=a(void 0);c(m,u,f),d[t].push(l(m))}}let n=e.listKind=="enum"?g.INT32:e.scalar,o=e.listKind=="scalar"?e.longAsString:!1,r=Cn(n,e.utf8Validation,o),s=n!=g.STRING&&n!=g.BYTES;return(a,l,c,d)=>{let u=a[t];if(d==H.LengthDelimited&&s){let f=l.uint32()+l.pos;for(;l.pos<f;)u.push(r(l))}else u.push(r(l))}}function np(e){let t=e.localName,n=Cn(e.mapKey,e.utf8Validation,!1),o=de(e.mapKey,!1),r,s;switch(e.mapKind){case"scalar":{let a=e.scalar,l=Cn(a,e.utf8Validation,!1);if(r=c=>l(c),a==g.BYTES)s=()=>new Uint8Array(0);else{let c=de(a,!1);s=()=>c}break}case"enum":{let a=e.enum.values[0].number;r=l=>l.int32(),s=()=>a;break}case"message":{let{toMessage:a,toLocal:l}=he(e),c=mr(e.message).read;r=(d,u,f)=>{let m=a(f);return c(m,d,u,d.uint32()),l(m)},s=()=>l(a(void 0));break}}return(a,l,c)=>{let d=a[t],u,f,m=l.uint32(),p=l.pos+m;for(;l.pos<p;){let[h,y]=l.tag();switch(h){case 1:u=n(l);break;case 2:f=r(l,c,f);break;default:l.skip(y,h,c.recursionLimit-c.depth)}}u===void 0&&(u=o),f===void 0&&(f=s()),ue(d,u,f)}}function Cn(e,t,n){switch(e){case g.STRING:return o=>o.string(t);case g.BOOL:return o=>o.bool();case g.DOUBLE:return o=>o.double();case g.FLOAT:return o=>o.float();case g.INT32:return o=>o.int32();case g.INT64:return n?o=>String(o.int64()):o=>o.int64();case g.UINT64:return n?o=>String(o.uint64()):o=>o.uint64();case g.FIXED64:return n?o=>String(o.fixed64()):o=>o.fixed64();case g.BYTES:return o=>o.bytes();case g.FIXED32:return o=>o.fixed32();case g.SFIXED32:return o=>o.sfixed32();case g.SFIXED64:return n?o=>String(o.sfixed64()):o=>o.sfixed64();case g.SINT64:return n?o=>String(o.sint64()):o=>o.sint64();case g.UINT32:return o=>o.uint32();case g.SINT32:return o=>o.sint32()}}function be(e,t){var n;let o=Pe(Li,gt(e));return o.messageType.forEach(Zt),o.dependency=(n=t?.map(s=>s.proto.name))!==null&&n!==void 0?n:[],Tn(o,s=>t?.find(a=>a.proto.name===s)).getFile(o.name)}var Pn=be("Ch9nb29nbGUvcHJvdG9idWYvdGltZXN0YW1wLnByb3RvEg9nb29nbGUucHJvdG9idWYiKwoJVGltZXN0YW1wEg8KB3NlY29uZHMYASABKAMSDQoFbmFub3MYAiABKAVChQEKE2NvbS5nb29nbGUucHJvdG9idWZCDlRpbWVzdGFtcFByb3RvUAFaMmdvb2dsZS5nb2xhbmcub3JnL3Byb3RvYnVmL3R5cGVzL2tub3duL3RpbWVzdGFtcHBi+AEBogIDR1BCqgIeR29vZ2xlLlByb3RvYnVmLldlbGxLbm93blR5cGVzYgZwcm90bzM");function Fi(e){return new Date(op(e))}function op(e){return Number(e.seconds)*1e3+Math.round(e.nanos/1e6)}var hr=be("Chlnb29nbGUvcHJvdG9idWYvYW55LnByb3RvEg9nb29nbGUucHJvdG9idWYiJgoDQW55EhAKCHR5cGVfdXJsGAEgASgJEg0KBXZhbHVlGAIgASgMQnYKE2NvbS5nb29nbGUucHJvdG9idWZCCEFueVByb3RvUAFaLGdvb2dsZS5nb2xhbmcub3JnL3Byb3RvYnVmL3R5cGVzL2tub3duL2FueXBiogIDR1BCqgIeR29vZ2xlLlByb3RvYnVmLldlbGxLbm93blR5cGVzYgZwcm90bzM"),Wi=ge(hr,0);var rp=2,sp=3,Ui={writeUnknownFields:!0};function ap(e){return e?Object.assign(Object.assign({},Ui),e):Ui}function He(e,t,n){let o=new mt;return gr(e)(o,ap(n),t),o.finish()}var Bi=new WeakMap;function gr(e){let t=Bi.get(e);return t===void 0&&(t=ip(e)),t}function ip(e){let t=e.typeName,n=e.fields.concat().sort((a,l)=>a.number-l.number),o=n[0],r=[],s=(a,l,c)=>{if(c.$typeName!==t&&o!==void 0)throw new Y(o,`cannot use ${o} with message ${c.$typeName}`,"ForeignFieldError");for(let u=0;u<r.length;u++)r[u](a,l,c);let d=c.$unknown;if(d!==void 0&&l.writeUnknownFields)for(let u=0;u<d.length;u++){let{no:f,wireType:m,data:p}=d[u];a.tag(f,m).raw(p)}};Bi.set(e,s);for(let a of n)r.push(Di(a));return s}function Di(e){switch(e.fieldKind){case"message":case"scalar":case"enum":return lp(e);case"list":return up(e);case"map":return dp(e)}}function lp(e){let t=cp(e),n=e.localName;if(e.oneof){let o=e.oneof.localName;return(r,s,a)=>{let l=a[o];l.case===n&&t(r,s,l.value)}}if(e.presence!=rp){let o=e.presence==sp?`cannot encode ${e} to binary: required field not set`:void 0;return(r,s,a)=>{let l=a[n];if(l!==void 0&&Object.prototype.hasOwnProperty.call(a,n))t(r,s,l);else if(o!==void 0)throw new Error(o)}}if(e.fieldKind=="enum"){let o=e.enum.values[0].number;return(r,s,a)=>{let l=a[n];l!==o&&t(r,s,l)}}switch(e.scalar){case g.BOOL:return(o,r,s)=>{let a=s[n];a!==!1&&t(o,r,a)};case g.STRING:return(o,r,s)=>{let a=s[n];a!==""&&t(o,r,a)};case g.BYTES:return(o,r,s)=>{let a=s[n];(!(a instanceof Uint8Array)||a.byteLength>0)&&t(o,r,a)};case g.DOUBLE:case g.FLOAT:return(o,r,s)=>{let a=s[n];Object.is(a,0)||t(o,r,a)};default:return(o,r,s)=>{let a=s[n];a!=0&&t(o,r,a)}}}function cp(e){switch(e.fieldKind){case"message":{let{toMessage:t}=he(e),n=Zi(e);return(o,r,s)=>{n(o,r,t(s))}}case"scalar":case"enum":{let t=e.fieldKind=="enum"?g.INT32:e.scalar,n=e.number,o=Gn(t),r=Ln(t,e.parent.typeName,e.name);return(s,a,l)=>{s.tag(n,o),r(s,l)}}}}function up(e){let t=e.localName,n=e.number;switch(e.listKind){case"message":{let{toMessage:o}=he(e),r=Zi(e);return(s,a,l)=>{let c=l[t];for(let d=0;d<c.length;d++)r(s,a,o(c[d]))}}case"scalar":case"enum":{let o=e.listKind=="enum"?g.INT32:e.scalar,r=Ln(o,e.parent.typeName,e.name);if(e.packed)return(a,l,c)=>{let d=c[t];if(d.length!=0){a.tag(n,H.LengthDelimited).fork();for(let u=0;u<d.length;u++)r(a,d[u]);a.join()}};let s=Gn(o);return(a,l,c)=>{let d=c[t];for(let u=0;u<d.length;u++)a.tag(n,s),r(a,d[u])}}}}function dp(e){let t=e.localName,n=e.number,o=pp(e);if(e.mapKind=="message"){let{toMessage:l}=he(e),c=gr(e.message);return(d,u,f)=>{let m=f[t],p=Object.keys(m);for(let h=0;h<p.length;h++){let y=p[h];d.tag(n,H.LengthDelimited).fork(),o(d,y),d.tag(2,H.LengthDelimited).fork(),c(d,u,l(m[y])),d.join(),d.join()}}}let r=e.mapKind=="enum"?g.INT32:e.scalar,s=Gn(r),a=Ln(r,e.parent.typeName,e.name);return(l,c,d)=>{let u=d[t],f=Object.keys(u);for(let m=0;m<f.length;m++){let p=f[m];l.tag(n,H.LengthDelimited).fork(),o(l,p),l.tag(2,s),a(l,u[p]),l.join()}}}function pp(e){let t=Gn(e.mapKey),n=Ln(e.mapKey,e.parent.typeName,e.name),o=fp(e.mapKey);return(r,s)=>{r.tag(1,t),n(r,o(s))}}function fp(e){switch(e){case g.STRING:return t=>t;case g.BOOL:return t=>t==="true"?!0:t==="false"?!1:t;case g.UINT64:case g.FIXED64:return t=>{try{return D.uParse(t)}catch{return t}};case g.INT64:case g.SFIXED64:case g.SINT64:return t=>{try{return D.parse(t)}catch{return t}};default:return t=>{let n=Number.parseInt(t);return Number.isFinite(n)?n:t}}}function Ln(e,t,n){let o=mp(e);return(r,s)=>{try{o(r,s)}catch(a){throw a instanceof Error?new Error(`cannot encode field ${t}.${n} to binary: ${a.message}`):a}}}function mp(e){switch(e){case g.STRING:return(t,n)=>t.string(n);case g.BOOL:return(t,n)=>t.bool(n);case g.DOUBLE:return(t,n)=>t.double(n);case g.FLOAT:return(t,n)=>t.float(n);case g.INT32:return(t,n)=>t.int32(n);case g.INT64:return(t,n)=>t.int64(n);case g.UINT64:return(t,n)=>t.uint64(n);case g.FIXED64:return(t,n)=>t.fixed64(n);case g.BYTES:return(t,n)=>t.bytes(n);case g.FIXED32:return(t,n)=>t.fixed32(n);case g.SFIXED32:return(t,n)=>t.sfixed32(n);case g.SFIXED64:return(t,n)=>t.sfixed64(n);case g.SINT64:return(t,n)=>t.sint64(n);case g.UINT32:return(t,n)=>t.uint32(n);case g.SINT32:return(t,n)=>t.sint32(n)}}function Yi(e,t,n,o){Di(o)(e,t,n[ae])}function Zi(e){let t=e.number,n=gr(e.message);return e.delimitedEncoding?(o,r,s)=>{o.tag(t,H.StartGroup),n(o,r,s),o.tag(t,H.EndGroup)}:(o,r,s)=>{o.tag(t,H.LengthDelimited).fork(),n(o,r,s),o.join()}}function Gn(e){switch(e){case g.BYTES:case g.STRING:return H.LengthDelimited;case g.DOUBLE:case g.FIXED64:case g.SFIXED64:return H.Bit64;case g.FIXED32:case g.SFIXED32:case g.FLOAT:return H.Bit32;default:return H.Varint}}function Ki(e,t,n){let o=!1;return n||(n=ee(Wi),o=!0),n.value=He(e,t),n.typeUrl=bp(t.$typeName),o?n:void 0}function gp(e,t){if(e.typeUrl==="")return!1;let n=typeof t=="string"?t:t.typeName,o=$i(e.typeUrl);return n===o}function ji(e,t){if(e.typeUrl==="")return;let n=t.kind=="message"?t:t.getMessage($i(e.typeUrl));if(!(!n||!gp(e,n)))return Pe(n,e.value)}function bp(e){return`type.googleapis.com/${e}`}function $i(e){let t=e.lastIndexOf("/"),n=t>=0?e.substring(t+1):e;if(!n.length)throw new Error(`invalid type url: ${e}`);return n}var br=be("Chxnb29nbGUvcHJvdG9idWYvc3RydWN0LnByb3RvEg9nb29nbGUucHJvdG9idWYihAEKBlN0cnVjdBIzCgZmaWVsZHMYASADKAsyIy5nb29nbGUucHJvdG9idWYuU3RydWN0LkZpZWxkc0VudHJ5GkUKC0ZpZWxkc0VudHJ5EgsKA2tleRgBIAEoCRIlCgV2YWx1ZRgCIAEoCzIWLmdvb2dsZS5wcm90b2J1Zi5WYWx1ZToCOAEi6gEKBVZhbHVlEjAKCm51bGxfdmFsdWUYASABKA4yGi5nb29nbGUucHJvdG9idWYuTnVsbFZhbHVlSAASFgoMbnVtYmVyX3ZhbHVlGAIgASgBSAASFgoMc3RyaW5nX3ZhbHVlGAMgASgJSAASFAoKYm9vbF92YWx1ZRgEIAEoCEgAEi8KDHN0cnVjdF92YWx1ZRgFIAEoCzIXLmdvb2dsZS5wcm90b2J1Zi5TdHJ1Y3RIABIwCgpsaXN0X3ZhbHVlGAYgASgLMhouZ29vZ2xlLnByb3RvYnVmLkxpc3RWYWx1ZUgAQgYKBGtpbmQiMwoJTGlzdFZhbHVlEiYKBnZhbHVlcxgBIAMoCzIWLmdvb2dsZS5wcm90b2J1Zi5WYWx1ZSobCglOdWxsVmFsdWUSDgoKTlVMTF9WQUxVRRAAQn8KE2NvbS5nb29nbGUucHJvdG9idWZCC1N0cnVjdFByb3RvUAFaL2dvb2dsZS5nb2xhbmcub3JnL3Byb3RvYnVmL3R5cGVzL2tub3duL3N0cnVjdHBi+AEBogIDR1BCqgIeR29vZ2xlLlByb3RvYnVmLldlbGxLbm93blR5cGVzYgZwcm90bzM"),Xi=ge(br,0),yr=ge(br,1),Ji=ge(br,2),Vn;(function(e){e[e.NULL_VALUE=0]="NULL_VALUE"})(Vn||(Vn={}));function Hi(e,t,n){qi(t,e);let o=yp(e.$unknown,t),[r,s,a]=yt(t),l=fr(n);for(let c of o)Vi(r,new Me(c.data),s,c.wireType,l);return a()}function zi(e,t,n){var o;qi(t,e);let r=((o=e.$unknown)!==null&&o!==void 0?o:[]).filter(d=>d.no!==t.number),[s,a]=yt(t,n),l=new mt;Yi(l,{writeUnknownFields:!0},s,a);let c=new Me(l.finish());for(;c.pos<c.len;){let[d,u]=c.tag(),f=c.skip(u,d);r.push({no:d,wireType:u,data:f})}e.$unknown=r}function yp(e,t){if(e===void 0)return[];if(t.fieldKind==="enum"||t.fieldKind==="scalar"){for(let n=e.length-1;n>=0;--n)if(e[n].no==t.number)return[e[n]];return[]}return e.filter(n=>n.no===t.number)}function yt(e,t){let n=e.typeName,o=Object.assign(Object.assign({},e),{kind:"field",parent:e.extendee,localName:n}),r=Object.assign(Object.assign({},e.extendee),{fields:[o],members:[o],oneofs:[]}),s=ee(r,t!==void 0?{[n]:t}:void 0);return[Xa(r,s),o,()=>{let a=s[n];if(a===void 0){let l=e.message;return ve(l)?de(l.fields[0].scalar,l.fields[0].longAsString):ee(l)}return a}]}function qi(e,t){if(e.extendee.typeName!=t.$typeName)throw new Error(`extension ${e.typeName} can only be applied to message ${e.extendee.typeName}`)}var On=Date.parse("0001-01-01T00:00:00Z"),Mn=Date.parse("9999-12-31T23:59:59Z"),Fn=-315576e6,Wn=315576e6;var wp=3,vp=2,Qi={alwaysEmitImplicit:!1,enumAsInteger:!1,useProtoFieldName:!1};function Ep(e){return e?Object.assign(Object.assign({},Qi),e):Qi}function kp(e,t,n){return Un(e)(Ep(n),t)}function tl(e,t,n){var o;let r=kp(e,t,n);return JSON.stringify(r,null,(o=n?.prettySpaces)!==null&&o!==void 0?o:0)}var wr=new WeakMap;function Un(e){let t=wr.get(e);return t===void 0&&(t=xp(e)),t}function xp(e){let t=e.typeName,n=Np(e);if(n!==void 0){let l=e.fields[0],c=(d,u)=>{if(u.$typeName!==t&&l!==void 0)throw new Y(l,`cannot use ${l} with message ${u.$typeName}`,"ForeignFieldError");return n(d,u)};return wr.set(e,c),c}let o=e.fields.concat().sort((l,c)=>l.number-c.number),r=o[0],s=[],a=(l,c)=>{if(c.$typeName!==t&&r!==void 0)throw new Y(r,`cannot use ${r} with message ${c.$typeName}`,"ForeignFieldError");let d={};for(let u=0;u<s.length;u++)s[u](l,c,d);return l.registry&&Cp(d,l,l.registry,c,e),d};wr.set(e,a);for(let l of o){let c=Ap(l);s.push(l.jsonName==="__proto__"||l.name==="__proto__"?Sp(c):c)}return a}function Sp(e){return(t,n,o)=>{let r=Object.create(null);e(t,n,r);for(let s of Object.keys(r))ue(o,s,r[s])}}function Np(e){if(e.typeName.startsWith("google.protobuf."))switch(e.typeName){case"google.protobuf.Any":return(t,n)=>Pp(n,t);case"google.protobuf.Timestamp":return(t,n)=>Vp(n);case"google.protobuf.Duration":return(t,n)=>Lp(n);case"google.protobuf.FieldMask":return(t,n)=>Gp(n);case"google.protobuf.Struct":return(t,n)=>sl(n);case"google.protobuf.Value":return(t,n)=>kr(n);case"google.protobuf.ListValue":return(t,n)=>al(n);default:if(ve(e)){let t=e.fields[0],n=t.localName,o=de(t.scalar,!1),r=Bn(t);return(s,a)=>{let l=a[n];return r(s,l===void 0?o:l)}}return}}function Ap(e){switch(e.fieldKind){case"scalar":case"enum":case"message":return _p(e);case"list":case"map":{let t=e.fieldKind=="list"?ol(e):rl(e),n=e.name,o=e.jsonName,r=e.localName;return(s,a,l)=>{let c=t(s,a[r]);c!==void 0&&(l[s.useProtoFieldName?n:o]=c)}}}}function _p(e){let t=nl(e),n=e.name,o=e.jsonName,r=e.localName;if(e.oneof){let s=e.oneof.localName;return(a,l,c)=>{let d=l[s];d.case===r&&(c[a.useProtoFieldName?n:o]=t(a,d.value))}}if(e.presence!=vp){let s=e.presence==wp?`cannot encode ${e} to JSON: required field not set`:void 0;return(a,l,c)=>{let d=l[r];if(d!==void 0&&Object.prototype.hasOwnProperty.call(l,r))c[a.useProtoFieldName?n:o]=t(a,d);else if(s!==void 0)throw new Error(s)}}if(e.fieldKind=="enum"){let s=e.enum.values[0].number;return(a,l,c)=>{let d=l[r];(d!==s||a.alwaysEmitImplicit)&&(c[a.useProtoFieldName?n:o]=t(a,d))}}switch(e.scalar){case g.BOOL:return(s,a,l)=>{let c=a[r];(c!==!1||s.alwaysEmitImplicit)&&(l[s.useProtoFieldName?n:o]=t(s,c))};case g.STRING:return(s,a,l)=>{let c=a[r];(c!==""||s.alwaysEmitImplicit)&&(l[s.useProtoFieldName?n:o]=t(s,c))};case g.BYTES:return(s,a,l)=>{let c=a[r];(!(c instanceof Uint8Array)||c.byteLength>0||s.alwaysEmitImplicit)&&(l[s.useProtoFieldName?n:o]=t(s,c))};case g.DOUBLE:case g.FLOAT:return(s,a,l)=>{let c=a[r];(!Object.is(c,0)||s.alwaysEmitImplicit)&&(l[s.useProtoFieldName?n:o]=t(s,c))};default:return(s,a,l)=>{let c=a[r];(c!=0||s.alwaysEmitImplicit)&&(l[s.useProtoFieldName?n:o]=t(s,c))}}}function Ip(e){switch(e.fieldKind){case"scalar":case"enum":case"message":return nl(e);case"list":return ol(e);case"map":return rl(e)}}function nl(e){switch(e.fieldKind){case"scalar":return Bn(e);case"enum":return Er(e);case"message":return vr(e)}}function vr(e){let{toMessage:t}=he(e),n=Un(e.message);return(o,r)=>n(o,t(r))}function ol(e){let t=Tp(e);return(n,o)=>{let r=o;if(r.length==0&&!n.alwaysEmitImplicit)return;let s=[];for(let a=0;a<r.length;a++)s.push(t(n,r[a]));return s}}function Tp(e){switch(e.listKind){case"scalar":return Bn(e);case"enum":return Er(e);case"message":return vr(e)}}function rl(e){let t=Rp(e);return(n,o)=>{let r=o,s=Object.keys(r);if(s.length==0&&!n.alwaysEmitImplicit)return;let a={};for(let l=0;l<s.length;l++){let c=s[l];ue(a,c,t(n,r[c]))}return a}}function Rp(e){switch(e.mapKind){case"scalar":return Bn(e);case"enum":return Er(e);case"message":return vr(e)}}function Er(e){let t=e.enum;return t.typeName=="google.protobuf.NullValue"?(n,o)=>{if(typeof o!="number")throw el(t,o);return null}:(n,o)=>{var r,s;if(typeof o!="number")throw el(t,o);return n.enumAsInteger?o:(s=(r=t.value[o])===null||r===void 0?void 0:r.jsonName)!==null&&s!==void 0?s:o}}function el(e,t){return new Error(`cannot encode ${e} to JSON: expected number, got ${oe(t)}`)}function Bn(e){switch(e.scalar){case g.INT32:case g.SFIXED32:case g.SINT32:case g.FIXED32:case g.UINT32:return(t,n)=>{if(typeof n!="number")throw wt(e,n);return n};case g.FLOAT:case g.DOUBLE:return(t,n)=>{if(typeof n!="number")throw wt(e,n);return Number.isNaN(n)?"NaN":n===Number.POSITIVE_INFINITY?"Infinity":n===Number.NEGATIVE_INFINITY?"-Infinity":n};case g.STRING:return(t,n)=>{if(typeof n!="string")throw wt(e,n);return n};case g.BOOL:return(t,n)=>{if(typeof n!="boolean")throw wt(e,n);return n};case g.UINT64:case g.FIXED64:case g.INT64:case g.SFIXED64:case g.SINT64:return(t,n)=>{if(typeof n=="bigint"||typeof n=="string"||typeof n=="number"&&Number.isInteger(n))return n.toString();throw wt(e,n)};case g.BYTES:return(t,n)=>{if(n instanceof Uint8Array)return ir(n);throw wt(e,n)}}}function wt(e,t){var n;return new Error(`cannot encode ${e} to JSON: ${(n=En(e,t))===null||n===void 0?void 0:n.message}`)}function Cp(e,t,n,o,r){let s=o.$unknown;if(s===void 0)return;let a=new Set;for(let l=0;l<s.length;l++){let{no:c}=s[l];if(!a.has(c)){a.add(c);let d=n.getExtensionFor(r,c);if(!d)continue;let u=Hi(o,d),[f,m]=yt(d,u),p=f[ae],h=Ip(m)(t,p[m.localName]);h!==void 0&&(e[d.jsonName]=h)}}}function Pp(e,t){if(e.typeUrl==="")return{};let{registry:n}=t,o,r;if(n&&(o=ji(e,n),o&&(r=n.getMessage(o.$typeName))),!r||!o)throw new Error(`cannot encode message ${e.$typeName} to JSON: "${e.typeUrl}" is not in the type registry`);let s=wn(r)?{value:Un(r)(t,o)}:Un(r)(t,o);return s["@type"]=e.typeUrl,s}function Lp(e){let t=Number(e.seconds),n=e.nanos;if(t>Wn||t<Fn)throw new Error(`cannot encode message ${e.$typeName} to JSON: value out of range`);if(t>0&&n<0||t<0&&n>0)throw new Error(`cannot encode message ${e.$typeName} to JSON: nanos sign must match seconds sign`);let o=e.seconds.toString();if(n!==0){let r=Math.abs(n).toString();r="0".repeat(9-r.length)+r,r.substring(3)==="000000"?r=r.substring(0,3):r.substring(6)==="000"&&(r=r.substring(0,6)),o+="."+r,n<0&&t==0&&(o="-"+o)}return o+"s"}function Gp(e){return e.paths.map(t=>{if(_n(Ze(t))!==t)throw new Error(`cannot encode message ${e.$typeName} to JSON: lowerCamelCase of path name "${t}" is irreversible`);return Ze(t)}).join(",")}function sl(e){let t={},n=Object.keys(e.fields);for(let o=0;o<n.length;o++){let r=n[o];ue(t,r,kr(e.fields[r]))}return t}function kr(e){switch(e.kind.case){case"nullValue":return null;case"numberValue":if(!Number.isFinite(e.kind.value))throw new Error(`${e.$typeName} cannot be NaN or Infinity`);return e.kind.value;case"boolValue":return e.kind.value;case"stringValue":return e.kind.value;case"structValue":return sl(e.kind.value);case"listValue":return al(e.kind.value);default:throw new Error(`${e.$typeName} must have a value`)}}function al(e){return e.values.map(kr)}function Vp(e){let t=Number(e.seconds)*1e3;if(t<On||t>Mn)throw new Error(`cannot encode message ${e.$typeName} to JSON: must be from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z inclusive`);if(e.nanos<0)throw new Error(`cannot encode message ${e.$typeName} to JSON: nanos must not be negative`);if(e.nanos>999999999)throw new Error(`cannot encode message ${e.$typeName} to JSON: nanos must not be greater than 999999999`);let n="Z";if(e.nanos>0){let o=(e.nanos+1e9).toString().substring(1);o.substring(3)==="000000"?n="."+o.substring(0,3)+"Z":o.substring(6)==="000"?n="."+o.substring(0,6)+"Z":n="."+o+"Z"}return new Date(t).toISOString().replace(".000Z",n)}var Op=2;function Mp(e){return Object.assign(Object.assign({ignoreUnknownFields:!1,recursionLimit:100},e),{depth:0})}function ll(e,t,n){return Fp(e,Jp(t,e.typeName),n)}function Fp(e,t,n){let o=ee(e);return Wp(e,o,t,n),o}function Wp(e,t,n,o){try{vt(e)(t,n,Mp(o))}catch(r){throw Va(r)?new Error(`cannot decode ${r.field()} from JSON: ${r.message}`,{cause:r}):r}}var xr=new WeakMap;function vt(e){let t=xr.get(e);return t===void 0&&(t=Up(e)),t}function Up(e){let t=String(e),n=Bp(e);if(n!==void 0){let a=(l,c,d)=>{if(++d.depth>d.recursionLimit)throw new Error(`cannot decode ${t} from JSON: maximum recursion depth of ${d.recursionLimit} reached`);n(l,c,d),d.depth--};return xr.set(e,a),a}let o=e.typeName,r=new Map,s=(a,l,c)=>{var d;if(++c.depth>c.recursionLimit)throw new Error(`cannot decode ${t} from JSON: maximum recursion depth of ${c.recursionLimit} reached`);if(l==null||Array.isArray(l)||typeof l!="object")throw new Error(`cannot decode ${t} from JSON: ${oe(l)}`);let u=new Map,f=new Set,m=Object.keys(l);for(let p=0;p<m.length;p++){let h=m[p],y=l[h],b=r.get(h);if(b!==void 0){let w=b.field;if(f.has(w))throw new Y(w,"set multiple times");if(f.add(w),b.oneofScalarNullSkip&&y===null)continue;if(b.oneof){let v=u.get(b.oneof);if(v!==void 0)throw new Y(b.oneof,`oneof set multiple times by ${v.name} and ${w.name}`);u.set(b.oneof,w)}b.read(a,y,c)}else{let w=h.startsWith("[")&&h.endsWith("]")?(d=c.registry)===null||d===void 0?void 0:d.getExtension(h.substring(1,h.length-1)):void 0;if(w?.extendee.typeName==o){let[v,N,k]=yt(w);il(N)(v[ae],y,c),zi(a,w,k())}if(w===void 0&&!c.ignoreUnknownFields)throw new Error(`cannot decode ${t} from JSON: key "${h}" is unknown`)}}c.depth--};xr.set(e,s);for(let a of e.fields){let l={read:il(a),field:a,oneof:a.oneof,oneofScalarNullSkip:a.oneof!==void 0&&a.fieldKind=="scalar"};r.set(a.name,l).set(a.jsonName,l)}return s}function Bp(e){if(e.typeName.startsWith("google.protobuf."))switch(e.typeName){case"google.protobuf.Any":return(t,n,o)=>zp(t,n,o);case"google.protobuf.Timestamp":return(t,n)=>qp(t,n);case"google.protobuf.Duration":return(t,n)=>Qp(t,n);case"google.protobuf.FieldMask":return(t,n)=>ef(t,n);case"google.protobuf.Struct":return(t,n,o)=>pl(t,n,o);case"google.protobuf.Value":return(t,n,o)=>Ir(t,n,o);case"google.protobuf.ListValue":return(t,n,o)=>fl(t,n,o);default:if(ve(e)){let t=e.fields[0],n=t.localName,o=t.scalar,r=t.longAsString,s=ul(t);return(a,l)=>{l===null?a[n]=de(o,r):a[n]=s(l)}}return}}function il(e){switch(e.fieldKind){case"scalar":return Dp(e);case"enum":return Yp(e);case"message":return Zp(e);case"list":return Kp(e);case"map":return $p(e)}}function Dp(e){let t=ul(e),n=e.localName;if(e.oneof){let r=e.oneof.localName;return(s,a)=>{s[r]={case:n,value:t(a)}}}let o=cl(e);return(r,s)=>{s===null?o(r):r[n]=t(s)}}function cl(e){let t=e.localName;if(e.presence!=Op)return r=>{delete r[t]};if(e.fieldKind=="enum"){let r=e.enum.values[0].number;return s=>{s[t]=r}}let n=e.scalar,o=e.longAsString;return r=>{r[t]=de(n,o)}}function Yp(e){let t=Sr(e.enum),n=Nr(e.enum),o=e.localName,r=e.enum.typeName!="google.protobuf.NullValue";if(e.oneof){let a=e.oneof.localName;return(l,c,d)=>{if(c===null&&r){l[a].case===o&&(l[a]={case:void 0});return}let u=t(c,d.ignoreUnknownFields);if(u===Et)return;let f=n(u);if(f!==!0)throw new Y(e,Ne(e,u,f));l[a]={case:o,value:u}}}let s=cl(e);return(a,l,c)=>{if(l===null&&r){s(a);return}let d=t(l,c.ignoreUnknownFields);if(d===Et)return;let u=n(d);if(u!==!0)throw new Y(e,Ne(e,d,u));a[o]=d}}function Zp(e){let t=e.localName,{toMessage:n,toLocal:o}=he(e),r=vt(e.message),s=e.message.typeName!="google.protobuf.Value";if(e.oneof){let a=e.oneof.localName;return(l,c,d)=>{let u=l[a];if(c===null&&s){u.case===t&&(l[a]={case:void 0});return}let f=n(u.case===t?u.value:void 0);r(f,c,d),l[a]={case:t,value:o(f)}}}return(a,l,c)=>{if(l===null&&s){delete a[t];return}let d=n(a[t]);r(d,l,c),a[t]=o(d)}}function Kp(e){let t=e.localName,n=jp(e);return(o,r,s)=>{if(r===null)return;if(!Array.isArray(r))throw new Y(e,"expected Array, got "+oe(r));let a=o[t];for(let l=0;l<r.length;l++){let c=n(r[l],s,a.length);c!==Et&&a.push(c)}}}function jp(e){switch(e.listKind){case"scalar":{let t=Ar(e),n=Ye(e.scalar),o=_r(e);return(r,s,a)=>{if(r===null)throw new Y(e,"list item must not be null");let l=t(r),c=n(l);if(c!==!0)throw new Y(e,`list item #${a+1}: ${Ne(e,l,c)}`);return o(l)}}case"enum":{let t=Sr(e.enum),n=Nr(e.enum),o=e.enum.typeName!="google.protobuf.NullValue";return(r,s,a)=>{if(r===null&&o)throw new Y(e,"list item must not be null");let l=t(r,s.ignoreUnknownFields);if(l===Et)return l;let c=n(l);if(c!==!0)throw new Y(e,`list item #${a+1}: ${Ne(e,l,c)}`);return l}}case"message":{let{toMessage:t,toLocal:n}=he(e),o=vt(e.message),r=e.message.typeName!="google.protobuf.Value";return(s,a)=>{if(s===null&&r)throw new Y(e,"list item must not be null");let l=t(void 0);return o(l,s,a),n(l)}}}}function $p(e){let t=e.localName,n=e.mapKey,o=Xp(n),r=Ye(n),s,a,l=d=>d,c=!0;switch(e.mapKind){case"scalar":{s=Ar(e),a=Ye(e.scalar),l=_r(e);break}case"enum":{let d=Sr(e.enum);s=(u,f)=>d(u,f.ignoreUnknownFields),a=Nr(e.enum),c=e.enum.typeName!="google.protobuf.NullValue";break}case"message":{let{toMessage:d,toLocal:u}=he(e),f=vt(e.message);c=e.message.typeName!="google.protobuf.Value",s=(m,p)=>{let h=d(void 0);return f(h,m,p),u(h)};break}}return(d,u,f)=>{if(u===null)return;if(typeof u!="object"||Array.isArray(u))throw new Y(e,"expected object, got "+oe(u));let m=d[t],p=new Set,h=Object.keys(u);for(let y=0;y<h.length;y++){let b=h[y],w=u[b],v=o(b);if(p.has(v))throw new Y(e,`duplicate map key "${b}"`);if(p.add(v),w===null&&c)throw new Y(e,"map value must not be null");let N=s(w,f);if(N===Et)continue;let k=r(v);if(k!==!0)throw new Y(e,`invalid map key: ${Ne({scalar:n},v,k)}`);if(a!==void 0){let x=a(N);if(x!==!0)throw new Y(e,`map entry ${oe(v)}: ${Ne(e,N,x)}`)}ue(m,v,l(N))}}}var Et=Symbol();function Sr(e){let t=e.values[0].number,n=new Map;for(let o of e.values)n.set(o.jsonName,o.number);for(let o of e.values)n.set(o.name,o.number);return(o,r)=>{if(o===null)return t;switch(typeof o){case"number":if(Number.isInteger(o))return o;break;case"string":{let s=n.get(o);if(s!==void 0)return s;if(r)return Et;break}}throw new Error(`cannot decode ${e} from JSON: ${oe(o)}`)}}function Nr(e){if(e.open)return Ye(g.INT32);let t=e.values;return n=>t.some(o=>o.number===n)}function ul(e){let t=Ar(e),n=Ye(e.scalar),o=_r(e);return r=>{let s=t(r),a=n(s);if(a!==!0)throw new Y(e,Ne(e,s,a));return o(s)}}function Ar(e){switch(e.scalar){case g.DOUBLE:case g.FLOAT:return t=>{if(t==="NaN")return NaN;if(t==="Infinity")return Number.POSITIVE_INFINITY;if(t==="-Infinity")return Number.NEGATIVE_INFINITY;if(typeof t=="number"){if(Number.isNaN(t))throw new Y(e,"unexpected NaN number");if(!Number.isFinite(t))throw new Y(e,"unexpected infinite number");return t}if(typeof t=="string"){if(t===""||t.trim().length!==t.length)return t;let n=Number(t);return Number.isFinite(n)?n:t}return t};case g.INT32:case g.FIXED32:case g.SFIXED32:case g.SINT32:case g.UINT32:return dl;case g.BYTES:return t=>{if(typeof t=="string"){if(t==="")return new Uint8Array(0);try{return gt(t)}catch(n){let o=n instanceof Error?n.message:String(n);throw new Y(e,o)}}return t};default:return t=>t}}function _r(e){let t=e.fieldKind!=="map"&&e.longAsString;switch(e.scalar){case g.INT64:case g.SFIXED64:case g.SINT64:return t?n=>String(n):n=>typeof n=="string"||typeof n=="number"?D.parse(n):n;case g.FIXED64:case g.UINT64:return t?n=>String(n):n=>typeof n=="string"||typeof n=="number"?D.uParse(n):n;default:return n=>n}}function Xp(e){switch(e){case g.BOOL:return t=>{switch(t){case"true":return!0;case"false":return!1}return t};case g.INT32:case g.FIXED32:case g.UINT32:case g.SFIXED32:case g.SINT32:return dl;case g.INT64:case g.SINT64:case g.SFIXED64:case g.UINT64:case g.FIXED64:return t=>/^-?0+$/.test(t)?"0":t.replace(/^(-?)0+(?=\d)/,"$1");default:return t=>t}}function dl(e){if(typeof e=="string"){if(e===""||e.trim().length!==e.length)return e;let t=Number(e);return Number.isNaN(t)?e:t}return e}function Jp(e,t){let n;try{n=JSON.parse(e)}catch(o){let r=o instanceof Error?o.message:String(o);throw new Error(`cannot decode message ${t} from JSON: ${r}`,{cause:o})}return Hp(e,t),n}function Hp(e,t){let n=[],o=!1,r=0;for(;r<e.length;)switch(e[r]){case"{":n.push(new Set),o=!0,r++;break;case"[":n.push(null),o=!1,r++;break;case"}":case"]":n.pop(),o=!1,r++;break;case",":o=n[n.length-1]!=null,r++;break;case":":o=!1,r++;break;case'"':{let s=r++,a=!1;for(;r<e.length;){if(e[r]=="\\"){a=!0,r+=2;continue}if(e[r]=='"')break;r++}let l=r++,c=n[n.length-1];if(o&&c){let d=a?JSON.parse(e.substring(s,l+1)):e.substring(s+1,l);if(c.has(d))throw new Error(`cannot decode message ${t} from JSON: duplicate object key "${d}"`);c.add(d)}o=!1;break}default:r++;break}}function zp(e,t,n){var o;if(t===null||Array.isArray(t)||typeof t!="object")throw new Error(`cannot decode message ${e.$typeName} from JSON: expected object but got ${oe(t)}`);if(Object.keys(t).length==0)return;let r=t["@type"];if(typeof r!="string"||r=="")throw new Error(`cannot decode message ${e.$typeName} from JSON: "@type" is empty`);let s=r.includes("/")?r.substring(r.lastIndexOf("/")+1):r;if(!s.length)throw new Error(`cannot decode message ${e.$typeName} from JSON: "@type" is invalid`);let a=(o=n.registry)===null||o===void 0?void 0:o.getMessage(s);if(!a)throw new Error(`cannot decode message ${e.$typeName} from JSON: ${r} is not in the type registry`);let l=ee(a);if(wn(a)&&Object.prototype.hasOwnProperty.call(t,"value"))vt(a)(l,t.value,n);else{let c={};for(let d of Object.keys(t))d!=="@type"&&ue(c,d,t[d]);vt(a)(l,c,n)}Ki(a,l,e)}function qp(e,t){if(typeof t!="string")throw new Error(`cannot decode message ${e.$typeName} from JSON: ${oe(t)}`);let n=t.match(/^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-][0-9][0-9]:[0-9][0-9]))$/);if(!n)throw new Error(`cannot decode message ${e.$typeName} from JSON: invalid RFC 3339 string`);let o=Date.parse(n[1]+"-"+n[2]+"-"+n[3]+"T"+n[4]+":"+n[5]+":"+n[6]+(n[8]?n[8]:"Z"));if(Number.isNaN(o))throw new Error(`cannot decode message ${e.$typeName} from JSON: invalid RFC 3339 string`);if(o<On||o>Mn)throw new Error(`cannot decode message ${e.$typeName} from JSON: must be from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z inclusive`);e.seconds=D.parse(o/1e3),e.nanos=0,n[7]&&(e.nanos=parseInt("1"+n[7]+"0".repeat(9-n[7].length))-1e9)}function Qp(e,t){if(typeof t!="string")throw new Error(`cannot decode message ${e.$typeName} from JSON: ${oe(t)}`);let n=t.match(/^(-?[0-9]+)(?:\.([0-9]+))?s/);if(n===null)throw new Error(`cannot decode message ${e.$typeName} from JSON: ${oe(t)}`);let o=Number(n[1]);if(o>Wn||o<Fn)throw new Error(`cannot decode message ${e.$typeName} from JSON: ${oe(t)}`);if(e.seconds=D.parse(o),typeof n[2]!="string")return;let r=n[2]+"0".repeat(9-n[2].length);e.nanos=parseInt(r),(o<0||Object.is(o,-0))&&(e.nanos=-e.nanos)}function ef(e,t){if(typeof t!="string")throw new Error(`cannot decode message ${e.$typeName} from JSON: ${oe(t)}`);t!==""&&(e.paths=t.split(",").map(n=>{if(n.includes("_"))throw new Error(`cannot decode message ${e.$typeName} from JSON: path names must be lowerCamelCase`);return _n(n)}))}function pl(e,t,n){if(typeof t!="object"||t==null||Array.isArray(t))throw new Error(`cannot decode message ${e.$typeName} from JSON ${oe(t)}`);let o=Object.keys(t);for(let r=0;r<o.length;r++){let s=o[r],a=ee(yr);Ir(a,t[s],n),ue(e.fields,s,a)}}function Ir(e,t,n){if(++n.depth>n.recursionLimit)throw new Error(`cannot decode ${e.$typeName} from JSON: maximum recursion depth of ${n.recursionLimit} reached`);switch(typeof t){case"number":e.kind={case:"numberValue",value:t};break;case"string":e.kind={case:"stringValue",value:t};break;case"boolean":e.kind={case:"boolValue",value:t};break;case"object":if(t===null)e.kind={case:"nullValue",value:Vn.NULL_VALUE};else if(Array.isArray(t)){let o=ee(Ji);fl(o,t,n),e.kind={case:"listValue",value:o}}else{let o=ee(Xi);pl(o,t,n),e.kind={case:"structValue",value:o}}break;default:throw new Error(`cannot decode message ${e.$typeName} from JSON ${oe(t)}`)}return n.depth--,e}function fl(e,t,n){if(!Array.isArray(t))throw new Error(`cannot decode message ${e.$typeName} from JSON ${oe(t)}`);for(let o=0;o<t.length;o++){let r=ee(yr);Ir(r,t[o],n),e.values.push(r)}}function Tr(e){let t=_[e];return typeof t!="string"?e.toString():t[0].toLowerCase()+t.substring(1).replace(/[A-Z]/g,n=>"_"+n.toLowerCase())}var O=class e extends Error{constructor(t,n=_.Unknown,o,r,s){super(tf(t,n)),this.name="ConnectError",Object.setPrototypeOf(this,new.target.prototype),this.rawMessage=t,this.code=n,this.metadata=new Headers(o??{}),this.details=r??[],this.cause=s}static from(t,n=_.Unknown){return t instanceof e?t:t instanceof Error?t.name=="AbortError"||t.name=="TimeoutError"?new e(t.message,_.Canceled):new e(t.message,n,void 0,void 0,t):new e(String(t),n,void 0,void 0,t)}static[Symbol.hasInstance](t){return t instanceof Error?Object.getPrototypeOf(t)===e.prototype?!0:t.name==="ConnectError"&&"code"in t&&typeof t.code=="number"&&"metadata"in t&&"details"in t&&Array.isArray(t.details)&&"rawMessage"in t&&typeof t.rawMessage=="string"&&"cause"in t:!1}findDetails(t){let n=t.kind==="message"?{getMessage:r=>r===t.typeName?t:void 0}:t,o=[];for(let r of this.details){if("desc"in r){n.getMessage(r.desc.typeName)&&o.push(ee(r.desc,r.value));continue}let s=n.getMessage(r.type);if(s)try{o.push(Pe(s,r.value))}catch{}}return o}};function tf(e,t){return e.length?`[${Tr(t)}] ${e}`:`[${Tr(t)}]`}function ml(e,t,n){try{let o=gt(e);return t?Pe(t,o,n):o}catch(o){throw O.from(o,_.DataLoss)}}function hl(e,t){let n={};for(let o of e.methods){let r=t(o);r!=null&&(n[o.localName]=r)}return n}var Dn=1;function gl(e,t,n=!1){if(t>e){let o=`message size is larger than configured readMaxBytes ${e}`;throw n&&(o=`message size ${t} is larger than configured readMaxBytes ${e}`),new O(o,_.ResourceExhausted)}}function nf(e){return new Rr(e)}var Rr=class{constructor(t){this.readMaxBytes=t,this.header=new Uint8Array(5),this.headerView=new DataView(this.header.buffer),this.buf=[]}get byteLength(){return this.buf.reduce((t,n)=>t+n.byteLength,0)}decode(t){this.buf.push(t);let n=[];for(;;){let o=this.pop();if(!o)break;n.push(o)}return n}pop(){if(!(!this.env&&(this.env=this.head(),!this.env))&&this.cons(this.env.data)){let t=this.env;return this.env=void 0,t}}head(){if(!this.cons(this.header))return;let t=this.headerView.getUint8(0),n=this.headerView.getUint32(1);return gl(this.readMaxBytes,n,!0),{flags:t,data:new Uint8Array(n)}}cons(t){let n=t.byteLength;if(this.byteLength<n)return!1;let o=0;for(;o<n;){let r=this.buf.shift();r.byteLength>n-o?(t.set(r.subarray(0,n-o),o),this.buf.unshift(r.subarray(n-o)),o+=n-o):(t.set(r,o),o+=r.byteLength)}return!0}};function Yn(e){let t,n=nf(4294967295);return new ReadableStream({start(){t=e.getReader()},async pull(o){let r=!1;for(;!r;){let s=await t.read();if(s.done)n.byteLength>0&&o.error(new O("protocol error: incomplete envelope",_.InvalidArgument)),o.close();else for(let a of n.decode(s.value))o.enqueue(a),r=!0}}})}function Zn(e,t){let n=new Uint8Array(t.length+5);n.set(t,5);let o=new DataView(n.buffer,n.byteOffset,n.byteLength);return o.setUint8(0,e),o.setUint32(1,t.length),n}var of=function(e){if(!Symbol.asyncIterator)throw new TypeError("Symbol.asyncIterator is not defined.");var t=e[Symbol.asyncIterator],n;return t?t.call(e):(e=typeof __values=="function"?__values(e):e[Symbol.iterator](),n={},o("next"),o("throw"),o("return"),n[Symbol.asyncIterator]=function(){return this},n);function o(s){n[s]=e[s]&&function(a){return new Promise(function(l,c){a=e[s](a),r(l,c,a.done,a.value)})}}function r(s,a,l,c){Promise.resolve(c).then(function(d){s({value:d,done:l})},a)}},$t=function(e){return this instanceof $t?(this.v=e,this):new $t(e)},rf=function(e,t,n){if(!Symbol.asyncIterator)throw new TypeError("Symbol.asyncIterator is not defined.");var o=n.apply(e,t||[]),r,s=[];return r=Object.create((typeof AsyncIterator=="function"?AsyncIterator:Object).prototype),l("next"),l("throw"),l("return",a),r[Symbol.asyncIterator]=function(){return this},r;function a(p){return function(h){return Promise.resolve(h).then(p,f)}}function l(p,h){o[p]&&(r[p]=function(y){return new Promise(function(b,w){s.push([p,y,b,w])>1||c(p,y)})},h&&(r[p]=h(r[p])))}function c(p,h){try{d(o[p](h))}catch(y){m(s[0][3],y)}}function d(p){p.value instanceof $t?Promise.resolve(p.value.v).then(u,f):m(s[0][2],p)}function u(p){c("next",p)}function f(p){c("throw",p)}function m(p,h){p(h),s.shift(),s.length&&c(s[0][0],s[0][1])}},sf=function(e){var t,n;return t={},o("next"),o("throw",function(r){throw r}),o("return"),t[Symbol.iterator]=function(){return this},t;function o(r,s){t[r]=e[r]?function(a){return(n=!n)?{value:$t(e[r](a)),done:!1}:s?s(a):a}:s}};function bl(e){return rf(this,arguments,function*(){yield $t(yield*sf(of(e)))})}var yl=function(e){if(!Symbol.asyncIterator)throw new TypeError("Symbol.asyncIterator is not defined.");var t=e[Symbol.asyncIterator],n;return t?t.call(e):(e=typeof __values=="function"?__values(e):e[Symbol.iterator](),n={},o("next"),o("throw"),o("return"),n[Symbol.asyncIterator]=function(){return this},n);function o(s){n[s]=e[s]&&function(a){return new Promise(function(l,c){a=e[s](a),r(l,c,a.done,a.value)})}}function r(s,a,l,c){Promise.resolve(c).then(function(d){s({value:d,done:l})},a)}},kt=function(e){return this instanceof kt?(this.v=e,this):new kt(e)},af=function(e){var t,n;return t={},o("next"),o("throw",function(r){throw r}),o("return"),t[Symbol.iterator]=function(){return this},t;function o(r,s){t[r]=e[r]?function(a){return(n=!n)?{value:kt(e[r](a)),done:!1}:s?s(a):a}:s}},lf=function(e,t,n){if(!Symbol.asyncIterator)throw new TypeError("Symbol.asyncIterator is not defined.");var o=n.apply(e,t||[]),r,s=[];return r=Object.create((typeof AsyncIterator=="function"?AsyncIterator:Object).prototype),l("next"),l("throw"),l("return",a),r[Symbol.asyncIterator]=function(){return this},r;function a(p){return function(h){return Promise.resolve(h).then(p,f)}}function l(p,h){o[p]&&(r[p]=function(y){return new Promise(function(b,w){s.push([p,y,b,w])>1||c(p,y)})},h&&(r[p]=h(r[p])))}function c(p,h){try{d(o[p](h))}catch(y){m(s[0][3],y)}}function d(p){p.value instanceof kt?Promise.resolve(p.value.v).then(u,f):m(s[0][2],p)}function u(p){c("next",p)}function f(p){c("throw",p)}function m(p,h){p(h),s.shift(),s.length&&c(s[0][0],s[0][1])}};function Kn(e,t){return hl(e,n=>{switch(n.methodKind){case"unary":return cf(t,n);case"server_streaming":return uf(t,n);case"client_streaming":return df(t,n);case"bidi_streaming":return pf(t,n);default:return null}})}function cf(e,t){return async(n,o)=>{var r,s;let a=await e.unary(t,o?.signal,o?.timeoutMs,o?.headers,n,o?.contextValues);return(r=o?.onHeader)===null||r===void 0||r.call(o,a.header),(s=o?.onTrailer)===null||s===void 0||s.call(o,a.trailer),a.message}}function uf(e,t){return(n,o)=>wl(e.stream(t,o?.signal,o?.timeoutMs,o?.headers,bl([n]),o?.contextValues),o)}function df(e,t){return async(n,o)=>{var r,s,a,l,c,d;let u=await e.stream(t,o?.signal,o?.timeoutMs,o?.headers,n,o?.contextValues);(c=o?.onHeader)===null||c===void 0||c.call(o,u.header);let f,m=0;try{for(var p=!0,h=yl(u.message),y;y=await h.next(),r=y.done,!r;p=!0)l=y.value,p=!1,f=l,m++}catch(b){s={error:b}}finally{try{!p&&!r&&(a=h.return)&&await a.call(h)}finally{if(s)throw s.error}}if(!f)throw new O("protocol error: missing response message",_.Unimplemented);if(m>1)throw new O("protocol error: received extra messages for client streaming method",_.Unimplemented);return(d=o?.onTrailer)===null||d===void 0||d.call(o,u.trailer),f}}function pf(e,t){return(n,o)=>wl(e.stream(t,o?.signal,o?.timeoutMs,o?.headers,n,o?.contextValues),o)}function wl(e,t){let n=(function(){return lf(this,arguments,function*(){var o,r;let s=yield kt(e);(o=t?.onHeader)===null||o===void 0||o.call(t,s.header),yield kt(yield*af(yl(s.message))),(r=t?.onTrailer)===null||r===void 0||r.call(t,s.trailer)})})()[Symbol.asyncIterator]();return{[Symbol.asyncIterator]:()=>({next:()=>n.next()})}}function vl(...e){let t=new AbortController,n=e.filter(r=>r!==void 0).concat(t.signal);for(let r of n){if(r.aborted){o.apply(r);break}r.addEventListener("abort",o)}function o(){t.signal.aborted||t.abort(Cr(this));for(let r of n)r.removeEventListener("abort",o)}return t}function El(e){let t=new AbortController,n=()=>{t.abort(new O("the operation timed out",_.DeadlineExceeded))},o;return e!==void 0&&(e<=0?n():o=setTimeout(n,e)),{signal:t.signal,cleanup:()=>clearTimeout(o)}}function Cr(e){if(!e.aborted)return;if(e.reason!==void 0)return e.reason;let t=new Error("This operation was aborted");return t.name="AbortError",t}function jn(){return{get(e){return e.id in this?this[e.id]:e.defaultValue},set(e,t){return this[e.id]=t,this},delete(e){return delete this[e.id],this}}}function $n(e){let t=new Headers,n=new TextDecoder().decode(e).split(`\r
`);for(let o of n){if(o==="")continue;let r=o.indexOf(":");if(r>0){let s=o.substring(0,r).trim(),a=o.substring(r+1).trim();t.append(s,a)}}return t}var Pr="Content-Type";var Lr="Grpc-Timeout",Le="Grpc-Status",Xt="Grpc-Message",Gr="Grpc-Status-Details-Bin";var Xn="User-Agent";var Vr="X-User-Agent",xl="X-Grpc-Web";var Sl="application/grpc-web+proto",Nl="application/grpc-web+json";function Jn(e,t,...n){if(n.length>0)throw new Error;return e.services[t]}var mf=be("CgxzdGF0dXMucHJvdG8SCmdvb2dsZS5ycGMiTgoGU3RhdHVzEgwKBGNvZGUYASABKAUSDwoHbWVzc2FnZRgCIAEoCRIlCgdkZXRhaWxzGAMgAygLMhQuZ29vZ2xlLnByb3RvYnVmLkFueUJeCg5jb20uZ29vZ2xlLnJwY0ILU3RhdHVzUHJvdG9QAVo3Z29vZ2xlLmdvbGFuZy5vcmcvZ2VucHJvdG8vZ29vZ2xlYXBpcy9ycGMvc3RhdHVzO3N0YXR1c6ICA1JQQ2IGcHJvdG8z",[hr]),Al=ge(mf,0);var _l="0";function Hn(e){var t;let n=e.get(Gr);if(n!=null){let r=ml(n,Al);if(r.code==0)return;let s=new O(r.message,r.code,e);return s.details=r.details.map(a=>({type:a.typeUrl.substring(a.typeUrl.lastIndexOf("/")+1),value:a.value})),s}let o=e.get(Le);if(o!=null){if(o===_l)return;let r=parseInt(o,10);return r in _?new O(decodeURIComponent((t=e.get(Xt))!==null&&t!==void 0?t:""),r,e):new O(`invalid grpc-status: ${o}`,_.Internal,e)}}function zn(e,t){return e.toString().replace(/\/?$/,`/${t.parent.typeName}/${t.name}`)}function Or(e,t){return ee(e,t)}function Il(e,t){function n(o){return o.done===!0?o:{done:o.done,value:Or(e,o.value)}}return{[Symbol.asyncIterator](){let o=t[Symbol.asyncIterator](),r={next:()=>o.next().then(n)};return o.throw!==void 0&&(r.throw=s=>o.throw(s).then(n)),o.return!==void 0&&(r.return=s=>o.return(s).then(n)),r}}}function Mr(e,t){if(!t)return e;for(let n of t.concat().reverse())e=n(e);return e}function Cl(e){var t;let n=Object.assign({},e);return(t=n.ignoreUnknownFields)!==null&&t!==void 0||(n.ignoreUnknownFields=!0),n}function qn(e,t,n,o){let r=t?Tl(e.input,o):Rl(e.input,n);return{parse:(t?Tl(e.output,o):Rl(e.output,n)).parse,serialize:r.serialize}}function Tl(e,t){return{parse(n){try{return Pe(e,n,t)}catch(o){let r=o instanceof Error?o.message:String(o);throw new O(`parse binary: ${r}`,_.Internal)}},serialize(n){try{return He(e,n,t)}catch(o){let r=o instanceof Error?o.message:String(o);throw new O(`serialize binary: ${r}`,_.Internal)}}}}function Rl(e,t){var n,o;let r=(n=t?.textEncoder)!==null&&n!==void 0?n:new TextEncoder,s=(o=t?.textDecoder)!==null&&o!==void 0?o:new TextDecoder,a=Cl(t);return{parse(l){try{let c=s.decode(l);return ll(e,c,a)}catch(c){throw O.from(c,_.InvalidArgument)}},serialize(l){try{let c=tl(e,l,a);return r.encode(c)}catch(c){throw O.from(c,_.Internal)}}}}function Fr(e){let t=Mr(e.next,e.interceptors),[n,o,r]=Pl(e),s=Object.assign(Object.assign({},e.req),{message:Or(e.req.method.input,e.req.message),signal:n});return t(s).then(a=>(r(),a),o)}function Wr(e){let t=Mr(e.next,e.interceptors),[n,o,r]=Pl(e),s=Object.assign(Object.assign({},e.req),{message:Il(e.req.method.input,e.req.message),signal:n}),a=!1;return n.addEventListener("abort",function(){var l,c;let d=e.req.message[Symbol.asyncIterator]();a||(l=d.throw)===null||l===void 0||l.call(d,this.reason).catch(()=>{}),(c=d.return)===null||c===void 0||c.call(d).catch(()=>{})}),t(s).then(l=>Object.assign(Object.assign({},l),{message:{[Symbol.asyncIterator](){let c=l.message[Symbol.asyncIterator]();return{next(){return c.next().then(d=>(d.done==!0&&(a=!0,r()),d),o)}}}}}),o)}function Pl(e){let{signal:t,cleanup:n}=El(e.timeoutMs),o=vl(e.signal,t);return[o.signal,function(s){let a=o.signal.aborted?O.from(Cr(o.signal),_.Canceled):O.from(s);return o.abort(a),n(),Promise.reject(a)},function(){n(),o.abort()}]}var at=class{constructor(t){this.text=t}text};function to(e){let t=0,n=()=>{throw new SyntaxError(`not JSON at byte ${t}`)},o=()=>{for(;t<e.length&&` 	\r
`.includes(e[t]);)t+=1},r=()=>{let l=t;for(t+=1;e[t]!=='"';)t>=e.length&&n(),t+=e[t]==="\\"?2:1;return t+=1,JSON.parse(e.slice(l,t))},s=l=>{l>500&&n(),o();let c=e[t];if(c==='"')return r();if(c==="{"){t+=1;let u=Object.create(null);if(o(),e[t]==="}")t+=1;else for(;;){o(),e[t]!=='"'&&n();let f=r();if(o(),e[t]!==":"&&n(),t+=1,u[f]=s(l+1),o(),e[t]===",")t+=1;else if(e[t]==="}"){t+=1;break}else n()}return u}if(c==="["){t+=1;let u=[];if(o(),e[t]==="]")t+=1;else for(;;)if(u.push(s(l+1)),o(),e[t]===",")t+=1;else if(e[t]==="]"){t+=1;break}else n();return u}for(let[u,f]of[["true",!0],["false",!1],["null",null]])if(e.startsWith(u,t))return t+=u.length,f;let d=/^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/.exec(e.slice(t,t+400));return d?(t+=d[0].length,new at(d[0])):n()},a=s(0);return o(),t<e.length&&n(),a}var Ll=/^[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$|^[0-9]+[A-Za-z][A-Za-z0-9]*$/,Gl=/^(true|false|null|yes|no|on|off|~)$|^[0-9]+e[0-9]+$/i;function Qn(e,t){if(e===null)return"null";if(typeof e=="boolean")return String(e);if(e instanceof at)return e.text;if(typeof e=="string")return(Ll.test(e)||!t&&/^https?:\/\/[\w./:?=&%-]+$/.test(e))&&!Gl.test(e)?e:JSON.stringify(e)}var Ur=e=>Ll.test(e)&&!Gl.test(e)?e:JSON.stringify(e);function Fe(e){let t=Qn(e,!0);return t!==void 0?t:Array.isArray(e)?`[${e.map(Fe).join(", ")}]`:`{${Object.entries(e).map(([o,r])=>`${Ur(o)}: ${Fe(r)}`).join(", ")}}`}function eo(e,t,n,o){if(Array.isArray(e)){for(let r of e){let s=Qn(r,!1)??(Fe(r).length<=60||Jt(r)?Fe(r):void 0);s!==void 0?o.push({indent:t,text:`- ${s}`,unit:n}):(o.push({indent:t,text:"-",unit:n}),eo(r,t+1,n,o))}return}for(let[r,s]of Object.entries(e)){let a=n===""?r:`${n}.${r}`,l=Qn(s,!1)??(Jt(s)||Array.isArray(s)&&Fe(s).length<=60?Fe(s):void 0);l!==void 0?o.push({indent:t,text:`${Ur(r)}: ${l}`,unit:a}):(o.push({indent:t,text:`${Ur(r)}:`,unit:a}),eo(s,t+1,a,o))}}var Jt=e=>typeof e=="object"&&e!==null&&!(e instanceof at)&&Object.keys(e).length===0;function Br(e){try{let t=to(e),n=Qn(t,!1)??(Fe(t).length<=36||Jt(t)?Fe(t):void 0);if(n!==void 0)return[{indent:0,text:n,unit:""}];let o=[];return eo(t,0,"",o),o}catch{return[{indent:0,text:e,unit:""}]}}function Vl(e){try{let t=to(e);if(typeof t!="object"||t===null||t instanceof at||Jt(t))return Br(e);let n=[];return eo(t,0,"",n),n}catch{return[{indent:0,text:e,unit:""}]}}function Dr(e){let t=new Map;if(e===void 0)return t;let n=(o,r)=>{if(typeof o=="object"&&o!==null&&!Array.isArray(o)&&!(o instanceof at)&&!Jt(o))for(let[s,a]of Object.entries(o))n(a,r===""?s:`${r}.${s}`);else t.set(r||"*",Fe(o))};try{n(to(e),"")}catch{t.set("*",e)}return t}function Ht(e){try{return Fe(to(e))}catch{return e}}function Ol(){try{new Headers}catch{throw new Error("connect-web requires the fetch API. Are you running on an old version of Node.js? Node.js is not supported in Connect for Web - please stay tuned for Connect for Node.")}}function zt(e,t){let n=Hn(e);if(n)throw t.forEach((o,r)=>{n.metadata.append(r,o)}),n;if(!t.has(Le)&&!e.has(Le))throw new O("protocol error: missing status",_.Internal)}function no(e,t,n,o){var r,s;let a=new Headers(n??{});a.set(Pr,e?Sl:Nl),a.set(xl,"1");let l=(s=(r=a.get(Xn))!==null&&r!==void 0?r:a.get(Vr))!==null&&s!==void 0?s:"connect-es/2.1.2";return a.set(Vr,l),o&&a.set(Xn,l),t!==void 0&&a.set(Lr,`${t}m`),a}function Ml(e){switch(e){case 400:return _.Internal;case 401:return _.Unauthenticated;case 403:return _.PermissionDenied;case 404:return _.Unimplemented;case 429:return _.Unavailable;case 502:return _.Unavailable;case 503:return _.Unavailable;case 504:return _.Unavailable;default:return _.Unknown}}function oo(e,t){var n;if(e>=200&&e<300)return{foundStatus:t.has(Le),headerError:Hn(t)};throw new O(decodeURIComponent((n=t.get(Xt))!==null&&n!==void 0?n:`HTTP ${e}`),Ml(e),t)}var it=function(e){return this instanceof it?(this.v=e,this):new it(e)},hf=function(e,t,n){if(!Symbol.asyncIterator)throw new TypeError("Symbol.asyncIterator is not defined.");var o=n.apply(e,t||[]),r,s=[];return r=Object.create((typeof AsyncIterator=="function"?AsyncIterator:Object).prototype),l("next"),l("throw"),l("return",a),r[Symbol.asyncIterator]=function(){return this},r;function a(p){return function(h){return Promise.resolve(h).then(p,f)}}function l(p,h){o[p]&&(r[p]=function(y){return new Promise(function(b,w){s.push([p,y,b,w])>1||c(p,y)})},h&&(r[p]=h(r[p])))}function c(p,h){try{d(o[p](h))}catch(y){m(s[0][3],y)}}function d(p){p.value instanceof it?Promise.resolve(p.value.v).then(u,f):m(s[0][2],p)}function u(p){c("next",p)}function f(p){c("throw",p)}function m(p,h){p(h),s.shift(),s.length&&c(s[0][0],s[0][1])}},Fl={redirect:"error"};function Yr(e){var t;Ol();let n=(t=e.useBinaryFormat)!==null&&t!==void 0?t:!0;return{async unary(o,r,s,a,l,c){let{serialize:d,parse:u}=qn(o,n,e.jsonOptions,e.binaryOptions);return s=s===void 0?e.defaultTimeoutMs:s<=0?void 0:s,await Fr({interceptors:e.interceptors,signal:r,timeoutMs:s,req:{stream:!1,service:o.parent,method:o,requestMethod:"POST",url:zn(e.baseUrl,o),header:no(n,s,a,!1),contextValues:c??jn(),message:l},next:async f=>{var m;let h=await((m=e.fetch)!==null&&m!==void 0?m:globalThis.fetch)(f.url,Object.assign(Object.assign({},Fl),{method:f.requestMethod,headers:f.header,signal:f.signal,body:Zn(0,d(f.message))})),{headerError:y}=oo(h.status,h.headers);if(!h.body)throw y!==void 0?y:"missing response body";let b=Yn(h.body).getReader(),w,v;for(;;){let N=await b.read();if(N.done)break;let{flags:k,data:x}=N.value;if((k&Dn)===Dn)throw new O("protocol error: received unsupported compressed output",_.Internal);if(k===128){if(w!==void 0)throw"extra trailer";w=$n(x);continue}if(v!==void 0)throw new O("extra message",_.Unimplemented);v=u(x)}if(w===void 0)throw y!==void 0?y:new O("missing trailer",h.headers.has(Le)?_.Unimplemented:_.Unknown);if(zt(w,h.headers),v===void 0)throw new O("missing message",w.has(Le)?_.Unimplemented:_.Unknown);return{stream:!1,service:o.parent,method:o,header:h.headers,message:v,trailer:w}}})},async stream(o,r,s,a,l,c){let{serialize:d,parse:u}=qn(o,n,e.jsonOptions,e.binaryOptions);function f(p,h,y,b,w){return hf(this,arguments,function*(){let N=Yn(p).getReader();if(h){if(!(yield it(N.read())).done)throw"extra data for trailers-only";return yield it(void 0)}let k=!1;for(;;){let x=yield it(N.read());if(x.done)break;let{flags:R,data:C}=x.value;if((R&128)===128){if(k)throw"extra trailer";k=!0;let I=$n(C);zt(I,b),I.forEach((F,K)=>y.set(K,F));continue}if(k)throw"extra message";yield yield it(u(C))}if("throwIfAborted"in w&&w.throwIfAborted(),!k)throw"missing trailer"})}async function m(p){if(o.methodKind!="server_streaming")throw"The fetch API does not support streaming request bodies";let h=await p[Symbol.asyncIterator]().next();if(h.done==!0)throw"missing request message";return Zn(0,d(h.value))}return s=s===void 0?e.defaultTimeoutMs:s<=0?void 0:s,Wr({interceptors:e.interceptors,signal:r,timeoutMs:s,req:{stream:!0,service:o.parent,method:o,requestMethod:"POST",url:zn(e.baseUrl,o),header:no(n,s,a,!1),contextValues:c??jn(),message:l},next:async p=>{var h;let b=await((h=e.fetch)!==null&&h!==void 0?h:globalThis.fetch)(p.url,Object.assign(Object.assign({},Fl),{method:p.requestMethod,headers:p.header,signal:p.signal,body:await m(p.message)})),{foundStatus:w,headerError:v}=oo(b.status,b.headers);if(v!=null)throw v;if(!b.body)throw"missing response body";let N=new Headers;return Object.assign(Object.assign({},p),{header:b.headers,trailer:N,message:f(b.body,w,N,b.headers,p.signal)})}})}}}var so=be("ChVlbnRhaWwvdjEvdHlwZXMucHJvdG8SCWVudGFpbC52MSIsCgdWZXJzaW9uEg0KBWVwb2NoGAEgASgJEhIKCmdlbmVyYXRpb24YAiABKAQi0gEKCUtpbmRTdGF0ZRIMCgRraW5kGAEgASgJEikKBXN0YXRlGAIgASgOMhouZW50YWlsLnYxLktpbmRTdGF0ZS5TdGF0ZRIOCgZyZWFzb24YAyABKAkSDwoHbWVzc2FnZRgEIAEoCSJrCgVTdGF0ZRIVChFTVEFURV9VTlNQRUNJRklFRBAAEhIKDlNUQVRFX0NPTVBMRVRFEAESDwoLU1RBVEVfU1RBTEUQAhITCg9TVEFURV9GT1JCSURERU4QAxIRCg1TVEFURV9VTktOT1dOEAQiUgoHVW5rbm93bhIOCgZyZWFzb24YASABKAkSDwoHbWVzc2FnZRgCIAEoCRImCghwb2xpY2llcxgDIAMoCzIULmVudGFpbC52MS5Qb2xpY3lSZWYiUQoQVW5yZWFkUGFyYW1ldGVycxIOCgZvYmplY3QYASABKAkSDAoEa2luZBgCIAEoCRIRCgluYW1lc3BhY2UYAyABKAkSDAoEbmFtZRgEIAEoCSLhAQoHUGF0aFJlZhIPCgdnYXRld2F5GAEgASgJEhQKDGxpc3RlbmVyX3NldBgCIAEoCRIQCghsaXN0ZW5lchgDIAEoCRINCgVyb3V0ZRgEIAEoCRIMCgRydWxlGAUgASgJEg8KB2JhY2tlbmQYBiABKAkSFAoMYmFja2VuZF9wb3J0GAcgASgNEg8KB3NlcnZpY2UYCCABKAkSFAoMc2VydmljZV9wb3J0GAkgASgNEhgKEGNsaWVudF9uYW1lc3BhY2UYCiABKAkSGAoQZGVsZWdhdGluZ19ydWxlcxgLIAMoCSIsCglQb2xpY3lSZWYSEQoJbmFtZXNwYWNlGAEgASgJEgwKBG5hbWUYAiABKAkibwoGT3JpZ2luEgwKBHVuaXQYASABKAkSJgoIcG9saWNpZXMYAiADKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEg4KBm9iamVjdBgDIAEoCRIfCgVibG9jaxgEIAEoDjIQLmVudGFpbC52MS5CbG9jayJVCgxMaXN0ZWRQb2xpY3kSJAoGcG9saWN5GAEgASgLMhQuZW50YWlsLnYxLlBvbGljeVJlZhIMCgRub2RlGAIgASgJEhEKCXNwZWNfanNvbhgDIAEoCSJXCg5SZWplY3RlZFBvbGljeRIkCgZwb2xpY3kYASABKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEg4KBnJlYXNvbhgCIAEoCRIPCgdtZXNzYWdlGAMgASgJItQCCg9FZmZlY3RpdmVQb2xpY3kSDQoFZ3JvdXAYASABKAkSDAoEa2luZBgCIAEoCRIWCglzcGVjX2pzb24YAyABKAlIAIgBARIRCglzcGVjX2V0YWcYBCABKAkSDAoEZXRhZxgFIAEoCRIiCgdvcmlnaW5zGAYgAygLMhEuZW50YWlsLnYxLk9yaWdpbhIQCghzdHJhdGVneRgHIAEoCRInCgZsaXN0ZWQYCCADKAsyFy5lbnRhaWwudjEuTGlzdGVkUG9saWN5EisKCHJlamVjdGVkGAkgAygLMhkuZW50YWlsLnYxLlJlamVjdGVkUG9saWN5EhYKDmluaGVyaXRlZF9vbmx5GAogASgIEhQKDG5vdF9jb21wdXRlZBgLIAEoCRIjCgd1bmtub3duGAwgASgLMhIuZW50YWlsLnYxLlVua25vd25CDAoKX3NwZWNfanNvbiJLCglQYXRoRXJyb3ISDAoEY29kZRgBIAEoBRIOCgZyZWFzb24YAiABKAkSDwoHbWVzc2FnZRgDIAEoCRIPCgduZWFyZXN0GAQgASgJIqEBCgxQYXRoUG9saWNpZXMSLAoIcG9saWNpZXMYASADKAsyGi5lbnRhaWwudjEuRWZmZWN0aXZlUG9saWN5EiMKBWVycm9yGAIgASgLMhQuZW50YWlsLnYxLlBhdGhFcnJvchIMCgRldGFnGAMgASgJEhQKDG5vdF9tb2RpZmllZBgEIAEoCBIRCgRib2R5GAUgASgNSACIAQFCBwoFX2JvZHkiOgoKUG9saWN5Qm9keRIsCghwb2xpY2llcxgBIAMoCzIaLmVudGFpbC52MS5FZmZlY3RpdmVQb2xpY3kqegoFQmxvY2sSFQoRQkxPQ0tfVU5TUEVDSUZJRUQQABIbChdCTE9DS19JTVBMSUNJVF9ERUZBVUxUUxABEhIKDkJMT0NLX0RFRkFVTFRTEAISEwoPQkxPQ0tfT1ZFUlJJREVTEAMSFAoQQkxPQ0tfT1dOX0ZJRUxEUxAEQipaKGVudGFpbC5kZXYvY2xpZW50cy9nby9lbnRhaWwvdjE7ZW50YWlsdjFiBnByb3RvMw");var gf=be("CiBlbnRhaWwvdjEvZWZmZWN0aXZlX3BvbGljeS5wcm90bxIJZW50YWlsLnYxIoABChtHZXRFZmZlY3RpdmVQb2xpY2llc1JlcXVlc3QSDgoEcGF0aBgBIAEoCUgAEiEKA3JlZhgCIAEoCzISLmVudGFpbC52MS5QYXRoUmVmSAASDQoFa2luZHMYAyADKAkSFQoNaWZfbm9uZV9tYXRjaBgEIAEoCUIICgZ0YXJnZXQiwAEKHEdldEVmZmVjdGl2ZVBvbGljaWVzUmVzcG9uc2USJwoGcmVzdWx0GAEgASgLMhcuZW50YWlsLnYxLlBhdGhQb2xpY2llcxIjCgd2ZXJzaW9uGAIgASgLMhIuZW50YWlsLnYxLlZlcnNpb24SLQoJc3luY2VkX2F0GAMgASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcBIjCgVraW5kcxgEIAMoCzIULmVudGFpbC52MS5LaW5kU3RhdGUiawogQmF0Y2hHZXRFZmZlY3RpdmVQb2xpY2llc1JlcXVlc3QSOAoIcmVxdWVzdHMYASADKAsyJi5lbnRhaWwudjEuR2V0RWZmZWN0aXZlUG9saWNpZXNSZXF1ZXN0Eg0KBWtpbmRzGAIgAygJIu0BCiFCYXRjaEdldEVmZmVjdGl2ZVBvbGljaWVzUmVzcG9uc2USKAoHcmVzdWx0cxgBIAMoCzIXLmVudGFpbC52MS5QYXRoUG9saWNpZXMSJQoGYm9kaWVzGAIgAygLMhUuZW50YWlsLnYxLlBvbGljeUJvZHkSIwoHdmVyc2lvbhgDIAEoCzISLmVudGFpbC52MS5WZXJzaW9uEi0KCXN5bmNlZF9hdBgEIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXASIwoFa2luZHMYBSADKAsyFC5lbnRhaWwudjEuS2luZFN0YXRlImYKHVdhdGNoRWZmZWN0aXZlUG9saWNpZXNSZXF1ZXN0EhAKCHByZWZpeGVzGAEgAygJEg4KBmxldmVscxgCIAMoCRINCgVraW5kcxgDIAMoCRIUCgxyZXN1bWVfdG9rZW4YBCABKAki/QIKHldhdGNoRWZmZWN0aXZlUG9saWNpZXNSZXNwb25zZRINCgVyZXNldBgBIAEoCBInCgZib2RpZXMYAiADKAsyFy5lbnRhaWwudjEuTnVtYmVyZWRCb2R5EiUKBXBhdGhzGAMgAygLMhYuZW50YWlsLnYxLldhdGNoZWRQYXRoEhUKDXJlbW92ZWRfcGF0aHMYBCADKAkSFgoOcmVtb3ZlZF9ib2RpZXMYBSADKA0SEAoIY29tcGxldGUYBiABKAgSLAoMY2xpZW50X3Jvb3RzGAcgASgLMhYuZW50YWlsLnYxLkNsaWVudFJvb3RzEhQKDHJlc3VtZV90b2tlbhgIIAEoCRIjCgd2ZXJzaW9uGAkgASgLMhIuZW50YWlsLnYxLlZlcnNpb24SLQoJc3luY2VkX2F0GAogASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcBIjCgVraW5kcxgLIAMoCzIULmVudGFpbC52MS5LaW5kU3RhdGUiWgoMTnVtYmVyZWRCb2R5EiwKCHBvbGljaWVzGAEgAygLMhouZW50YWlsLnYxLkVmZmVjdGl2ZVBvbGljeRIOCgZudW1iZXIYAiABKA0SDAoEZXRhZxgDIAEoCSI/CgtXYXRjaGVkUGF0aBIMCgRwYXRoGAEgASgJEgwKBGJvZHkYAiABKA0SFAoMcnVsZV9pbmRleGVzGAMgAygNIhwKC0NsaWVudFJvb3RzEg0KBXJvb3RzGAEgAygJIiwKDVJlcXVlc3RIZWFkZXISDAoEbmFtZRgBIAEoCRINCgV2YWx1ZRgCIAEoCSKrBgoVUmVzb2x2ZVJlcXVlc3RSZXF1ZXN0EjsKCHByb3RvY29sGAEgASgOMikuZW50YWlsLnYxLlJlc29sdmVSZXF1ZXN0UmVxdWVzdC5Qcm90b2NvbBIPCgdnYXRld2F5GAIgASgJEhQKDGxpc3RlbmVyX3NldBgDIAEoCRIQCghsaXN0ZW5lchgEIAEoCRIMCgRwb3J0GAUgASgNEg8KB3NlcnZpY2UYBiABKAkSGAoQY2xpZW50X25hbWVzcGFjZRgHIAEoCRIMCgRob3N0GAggASgJEg4KBm1ldGhvZBgJIAEoCRIMCgRwYXRoGAogASgJEikKB2hlYWRlcnMYCyADKAsyGC5lbnRhaWwudjEuUmVxdWVzdEhlYWRlchILCgNzbmkYDCABKAkSFAoMZ3JwY19zZXJ2aWNlGA0gASgJEhMKC2dycGNfbWV0aG9kGA4gASgJElAKE2hvc3RuYW1lX3ByZWNlZGVuY2UYDyABKA4yMy5lbnRhaWwudjEuUmVzb2x2ZVJlcXVlc3RSZXF1ZXN0Lkhvc3RuYW1lUHJlY2VkZW5jZRIiChpkaXNhYmxlX2xpc3RlbmVyX2lzb2xhdGlvbhgQIAEoCBINCgVraW5kcxgRIAMoCRIRCglyYXdfcXVlcnkYEiABKAgSFwoPbm9ybWFsaXplZF9wYXRoGBMgASgIEg8KB2RpYWxlY3QYFCABKAkSDwoHd2h5X25vdBgVIAEoCSKAAQoIUHJvdG9jb2wSGAoUUFJPVE9DT0xfVU5TUEVDSUZJRUQQABIRCg1QUk9UT0NPTF9IVFRQEAESEQoNUFJPVE9DT0xfR1JQQxACEhAKDFBST1RPQ09MX1RMUxADEhAKDFBST1RPQ09MX1RDUBAEEhAKDFBST1RPQ09MX1VEUBAFIn4KEkhvc3RuYW1lUHJlY2VkZW5jZRIjCh9IT1NUTkFNRV9QUkVDRURFTkNFX1VOU1BFQ0lGSUVEEAASHQoZSE9TVE5BTUVfUFJFQ0VERU5DRV9ST1VURRABEiQKIEhPU1ROQU1FX1BSRUNFREVOQ0VfSU5URVJTRUNUSU9OEAIizwIKFlJlc29sdmVSZXF1ZXN0UmVzcG9uc2USLAoIcmVzb2x2ZWQYASADKAsyGi5lbnRhaWwudjEuUmVzb2x2ZWRSZXF1ZXN0EjAKCnVucmVzb2x2ZWQYAiADKAsyHC5lbnRhaWwudjEuVW5yZXNvbHZlZFJlcXVlc3QSIwoHdmVyc2lvbhgDIAEoCzISLmVudGFpbC52MS5WZXJzaW9uEi0KCXN5bmNlZF9hdBgEIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXASIwoFa2luZHMYBSADKAsyFC5lbnRhaWwudjEuS2luZFN0YXRlEjYKEXVucmVhZF9wYXJhbWV0ZXJzGAYgAygLMhsuZW50YWlsLnYxLlVucmVhZFBhcmFtZXRlcnMSJAoHd2h5X25vdBgHIAMoCzITLmVudGFpbC52MS5SdWxlTWlzcyJvCghSdWxlTWlzcxINCgVyb3V0ZRgBIAEoCRISCgpydWxlX2luZGV4GAIgASgNEhEKCXJ1bGVfbmFtZRgGIAEoCRIMCgRwYXRoGAMgASgJEg4KBnJlYXNvbhgEIAEoCRIPCgdkZXRhaWxzGAUgAygJIpgCCg9SZXNvbHZlZFJlcXVlc3QSDAoEcGF0aBgBIAEoCRIfCgNyZWYYAiABKAsyEi5lbnRhaWwudjEuUGF0aFJlZhIMCgRwb3J0GAMgASgNEhIKCnJ1bGVfaW5kZXgYBCABKA0SGAoLbWF0Y2hfaW5kZXgYBSABKA1IAIgBARIPCgdtYXRjaGVkGAYgASgJEikKCHBvbGljaWVzGAcgASgLMhcuZW50YWlsLnYxLlBhdGhQb2xpY2llcxIsCghiYWNrZW5kcxgIIAMoCzIaLmVudGFpbC52MS5SZXNvbHZlZEJhY2tlbmQSDwoHZGlhbGVjdBgJIAEoCRIPCgdyZWZ1c2FsGAogASgJQg4KDF9tYXRjaF9pbmRleCJ+Cg9SZXNvbHZlZEJhY2tlbmQSDAoEcGF0aBgBIAEoCRIPCgdiYWNrZW5kGAIgASgJEg4KBndlaWdodBgDIAEoDRIOCgZyZWFzb24YBCABKAkSLAoIcG9saWNpZXMYBSADKAsyGi5lbnRhaWwudjEuRWZmZWN0aXZlUG9saWN5Io4BChFVbnJlc29sdmVkUmVxdWVzdBIMCgRwYXRoGAEgASgJEg4KBnJlYXNvbhgCIAEoCRIPCgdtZXNzYWdlGAMgASgJEigKC25lYXJfbWlzc2VzGAQgAygLMhMuZW50YWlsLnYxLk5lYXJNaXNzEg8KB2RpYWxlY3QYBSABKAkSDwoHcmVmdXNhbBgGIAEoCSI+CghOZWFyTWlzcxINCgVyb3V0ZRgBIAEoCRISCgpydWxlX2luZGV4GAIgASgNEg8KB21pc3NpbmcYAyADKAkywQMKFkVmZmVjdGl2ZVBvbGljeVNlcnZpY2USZwoUR2V0RWZmZWN0aXZlUG9saWNpZXMSJi5lbnRhaWwudjEuR2V0RWZmZWN0aXZlUG9saWNpZXNSZXF1ZXN0GicuZW50YWlsLnYxLkdldEVmZmVjdGl2ZVBvbGljaWVzUmVzcG9uc2USdgoZQmF0Y2hHZXRFZmZlY3RpdmVQb2xpY2llcxIrLmVudGFpbC52MS5CYXRjaEdldEVmZmVjdGl2ZVBvbGljaWVzUmVxdWVzdBosLmVudGFpbC52MS5CYXRjaEdldEVmZmVjdGl2ZVBvbGljaWVzUmVzcG9uc2USbwoWV2F0Y2hFZmZlY3RpdmVQb2xpY2llcxIoLmVudGFpbC52MS5XYXRjaEVmZmVjdGl2ZVBvbGljaWVzUmVxdWVzdBopLmVudGFpbC52MS5XYXRjaEVmZmVjdGl2ZVBvbGljaWVzUmVzcG9uc2UwARJVCg5SZXNvbHZlUmVxdWVzdBIgLmVudGFpbC52MS5SZXNvbHZlUmVxdWVzdFJlcXVlc3QaIS5lbnRhaWwudjEuUmVzb2x2ZVJlcXVlc3RSZXNwb25zZUIqWihlbnRhaWwuZGV2L2NsaWVudHMvZ28vZW50YWlsL3YxO2VudGFpbHYxYgZwcm90bzM",[so,Pn]);var Ul=Jn(gf,0);var Bl=be("Ch5lbnRhaWwvdjEvcG9saWN5X2luc2lnaHQucHJvdG8SCWVudGFpbC52MSJUCg5FeHBsYWluUmVxdWVzdBIMCgRuYW1lGAEgASgJEg0KBWtpbmRzGAIgAygJEhEKCXBhZ2Vfc2l6ZRgDIAEoBRISCgpwYWdlX3Rva2VuGAQgASgJIpkCCg9FeHBsYWluUmVzcG9uc2USKQoFcGF0aHMYASADKAsyGi5lbnRhaWwudjEuUGF0aEV4cGxhbmF0aW9uEiMKB3ZlcnNpb24YAiABKAsyEi5lbnRhaWwudjEuVmVyc2lvbhItCglzeW5jZWRfYXQYAyABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wEiMKBWtpbmRzGAQgAygLMhQuZW50YWlsLnYxLktpbmRTdGF0ZRIRCgl0cnVuY2F0ZWQYBSABKAgSNgoRdW5yZWFkX3BhcmFtZXRlcnMYBiADKAsyGy5lbnRhaWwudjEuVW5yZWFkUGFyYW1ldGVycxIXCg9uZXh0X3BhZ2VfdG9rZW4YByABKAkiSwoPUGF0aEV4cGxhbmF0aW9uEg0KBXBhdGhzGAEgAygJEikKBWtpbmRzGAIgAygLMhouZW50YWlsLnYxLktpbmRFeHBsYW5hdGlvbiK2AQoPS2luZEV4cGxhbmF0aW9uEioKBnBvbGljeRgBIAEoCzIaLmVudGFpbC52MS5FZmZlY3RpdmVQb2xpY3kSJgoFbm9kZXMYAiADKAsyFy5lbnRhaWwudjEuQXR0YWNoZWROb2RlEikKBXVuaXRzGAMgAygLMhouZW50YWlsLnYxLlVuaXRFeHBsYW5hdGlvbhISCgpsb3N0X3VuaXRzGAQgAygJEhAKCHdhcm5pbmdzGAUgAygJIncKDEF0dGFjaGVkTm9kZRIMCgRub2RlGAEgASgJEg0KBWxldmVsGAIgASgJEisKCHBvbGljaWVzGAMgAygLMhkuZW50YWlsLnYxLkF0dGFjaGVkUG9saWN5Eh0KFXByZWNlZGVzX2NoaWxkX3JvdXRlcxgEIAEoCCJzCg5BdHRhY2hlZFBvbGljeRIkCgZwb2xpY3kYASABKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEg4KBmJsb2NrcxgCIAMoCRIrCgdjcmVhdGVkGAMgASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcCK9AQoPVW5pdEV4cGxhbmF0aW9uEgwKBHVuaXQYASABKAkSFwoKdmFsdWVfanNvbhgCIAEoCUgAiAEBEiYKBm9yaWdpbhgDIAEoCzIRLmVudGFpbC52MS5PcmlnaW5IAYgBARIQCghzdHJhdGVneRgEIAEoCRIvCgpvdmVycmlkZGVuGAUgAygLMhsuZW50YWlsLnYxLk92ZXJyaWRkZW5Qb2xpY3lCDQoLX3ZhbHVlX2pzb25CCQoHX29yaWdpbiKLAQoQT3ZlcnJpZGRlblBvbGljeRIkCgZwb2xpY3kYASABKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEh8KBWJsb2NrGAIgASgOMhAuZW50YWlsLnYxLkJsb2NrEgwKBHVuaXQYAyABKAkSEgoKdmFsdWVfanNvbhgEIAEoCRIOCgZyZWFzb24YBSABKAkiSwoTTGlzdFBvbGljaWVzUmVxdWVzdBINCgVraW5kcxgBIAMoCRIRCglwYWdlX3NpemUYAiABKAUSEgoKcGFnZV90b2tlbhgDIAEoCSKeAgoUTGlzdFBvbGljaWVzUmVzcG9uc2USKQoIcG9saWNpZXMYASADKAsyFy5lbnRhaWwudjEuUG9saWN5U3RhdHVzEhcKD25leHRfcGFnZV90b2tlbhgCIAEoCRIjCgd2ZXJzaW9uGAMgASgLMhIuZW50YWlsLnYxLlZlcnNpb24SLQoJc3luY2VkX2F0GAQgASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcBIjCgVraW5kcxgFIAMoCzIULmVudGFpbC52MS5LaW5kU3RhdGUSNgoRdW5yZWFkX3BhcmFtZXRlcnMYBiADKAsyGy5lbnRhaWwudjEuVW5yZWFkUGFyYW1ldGVycxIRCgl0cnVuY2F0ZWQYByABKAgiSgoJQ29uZGl0aW9uEgwKBHR5cGUYASABKAkSDgoGc3RhdHVzGAIgASgJEg4KBnJlYXNvbhgDIAEoCRIPCgdtZXNzYWdlGAQgASgJIsMCCgxQb2xpY3lTdGF0dXMSDAoEa2luZBgBIAEoCRIkCgZwb2xpY3kYAiABKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEigKCmNvbmRpdGlvbnMYAyADKAsyFC5lbnRhaWwudjEuQ29uZGl0aW9uEhAKCGluX2ZvcmNlGAQgASgJEisKDW92ZXJyaWRkZW5fYnkYBSADKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEhEKCWFuY2VzdG9ycxgGIAMoCRIuCgpyZWZlcmVuY2VzGAcgAygLMhouZW50YWlsLnYxLlJlZmVyZW5jZVN0YXR1cxINCgVwYXRocxgIIAEoBBIYChBvdmVycmlkZGVuX3BhdGhzGAkgASgEEhgKEG92ZXJyaWRkZW5fdW5pdHMYCiADKAkSEAoId2FybmluZ3MYCyADKAkiUQoPUmVmZXJlbmNlU3RhdHVzEg0KBWZpZWxkGAEgASgJEg8KB291dGNvbWUYAiABKAkSDwoHbWVzc2FnZRgDIAEoCRINCgVub2RlcxgEIAMoCSJ5ChNMaXN0QWZmZWN0ZWRSZXF1ZXN0EhAKBm9iamVjdBgBIAEoCUgAEhAKBnBvbGljeRgCIAEoCUgAEgwKBHVuaXQYAyABKAkSEQoJcGFnZV9zaXplGAQgASgFEhIKCnBhZ2VfdG9rZW4YBSABKAlCCQoHc3ViamVjdCLLAgoUTGlzdEFmZmVjdGVkUmVzcG9uc2USLAoIcG9saWNpZXMYASADKAsyGi5lbnRhaWwudjEuQWZmZWN0aW5nUG9saWN5EiMKB3ZlcnNpb24YAiABKAsyEi5lbnRhaWwudjEuVmVyc2lvbhItCglzeW5jZWRfYXQYAyABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wEiMKBWtpbmRzGAQgAygLMhQuZW50YWlsLnYxLktpbmRTdGF0ZRInCgZzdGF0dXMYBSABKAsyFy5lbnRhaWwudjEuUG9saWN5U3RhdHVzEiYKBXBhdGhzGAYgAygLMhcuZW50YWlsLnYxLkFmZmVjdGVkUGF0aBIPCgdvYmplY3RzGAcgAygJEhEKCXRydW5jYXRlZBgIIAEoCBIXCg9uZXh0X3BhZ2VfdG9rZW4YCSABKAkiTwoMQWZmZWN0ZWRQYXRoEgwKBHBhdGgYASABKAkSFwoPZWZmZWN0aXZlX3VuaXRzGAIgAygJEhgKEG92ZXJyaWRkZW5fdW5pdHMYAyADKAkiRQoPQWZmZWN0aW5nUG9saWN5EgwKBGtpbmQYASABKAkSJAoGcG9saWN5GAIgASgLMhQuZW50YWlsLnYxLlBvbGljeVJlZiJXChBMaXN0UGF0aHNSZXF1ZXN0EgwKBG5hbWUYASABKAkSDgoGbGV2ZWxzGAIgAygJEhEKCXBhZ2Vfc2l6ZRgDIAEoBRISCgpwYWdlX3Rva2VuGAQgASgJItcBChFMaXN0UGF0aHNSZXNwb25zZRINCgVwYXRocxgBIAMoCRIXCg9uZXh0X3BhZ2VfdG9rZW4YAiABKAkSIwoHdmVyc2lvbhgDIAEoCzISLmVudGFpbC52MS5WZXJzaW9uEi0KCXN5bmNlZF9hdBgEIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXASIwoFa2luZHMYBSADKAsyFC5lbnRhaWwudjEuS2luZFN0YXRlEhEKCXRydW5jYXRlZBgGIAEoCBIOCgZvYmplY3QYByABKAkiOgoUUHJldmlld0NoYW5nZVJlcXVlc3QSEQoJbWFuaWZlc3RzGAEgASgJEg8KB2RlbGV0ZXMYAiADKAkiyAIKFVByZXZpZXdDaGFuZ2VSZXNwb25zZRIpCgdjaGFuZ2VzGAEgAygLMhguZW50YWlsLnYxLkNoYW5nZWRBbnN3ZXISEwoLcGF0aHNfYWRkZWQYAiADKAkSFQoNcGF0aHNfcmVtb3ZlZBgDIAMoCRIUCgxsb3Nlc192YWx1ZXMYBCABKAgSJAoIcHJvYmxlbXMYBSADKAsyEi5lbnRhaWwudjEuUHJvYmxlbRIjCgd2ZXJzaW9uGAYgASgLMhIuZW50YWlsLnYxLlZlcnNpb24SLQoJc3luY2VkX2F0GAcgASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcBIjCgVraW5kcxgIIAMoCzIULmVudGFpbC52MS5LaW5kU3RhdGUSEQoJdHJ1bmNhdGVkGAkgASgIEhAKCHdhcm5pbmdzGAogAygJIoYBCg1DaGFuZ2VkQW5zd2VyEgwKBGtpbmQYASABKAkSDQoFcGF0aHMYAiADKAkSJQoFdW5pdHMYAyADKAsyFi5lbnRhaWwudjEuQ2hhbmdlZFVuaXQSMQoObmV3bHlfcmVqZWN0ZWQYBCADKAsyGS5lbnRhaWwudjEuUmVqZWN0ZWRQb2xpY3kiwAEKC0NoYW5nZWRVbml0EgwKBHVuaXQYASABKAkSGAoLYmVmb3JlX2pzb24YAiABKAlIAIgBARIXCgphZnRlcl9qc29uGAMgASgJSAGIAQESKAoNYmVmb3JlX29yaWdpbhgEIAEoCzIRLmVudGFpbC52MS5PcmlnaW4SJwoMYWZ0ZXJfb3JpZ2luGAUgASgLMhEuZW50YWlsLnYxLk9yaWdpbkIOCgxfYmVmb3JlX2pzb25CDQoLX2FmdGVyX2pzb24iXwoTTGlzdEZpbmRpbmdzUmVxdWVzdBINCgVraW5kcxgBIAMoCRIRCglwYWdlX3NpemUYAiABKAUSEgoKcGFnZV90b2tlbhgDIAEoCRISCgptYXhfcGxhY2VzGAQgASgFIuEBChRMaXN0RmluZGluZ3NSZXNwb25zZRIkCghmaW5kaW5ncxgBIAMoCzISLmVudGFpbC52MS5GaW5kaW5nEiMKB3ZlcnNpb24YAiABKAsyEi5lbnRhaWwudjEuVmVyc2lvbhItCglzeW5jZWRfYXQYAyABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wEiMKBWtpbmRzGAQgAygLMhQuZW50YWlsLnYxLktpbmRTdGF0ZRIXCg9uZXh0X3BhZ2VfdG9rZW4YBSABKAkSEQoJdHJ1bmNhdGVkGAYgASgIIosCCgdGaW5kaW5nEi0KCHNldmVyaXR5GAEgASgOMhsuZW50YWlsLnYxLkZpbmRpbmcuU2V2ZXJpdHkSDgoGcmVhc29uGAIgASgJEhAKCGxvY2F0aW9uGAMgASgJEg4KBm9iamVjdBgEIAEoCRIPCgdtZXNzYWdlGAUgASgJEgwKBGNvZGUYBiABKAkSDQoFY291bnQYByABKAQSDgoGcGxhY2VzGAggAygJImEKCFNldmVyaXR5EhgKFFNFVkVSSVRZX1VOU1BFQ0lGSUVEEAASEgoOU0VWRVJJVFlfRVJST1IQARIUChBTRVZFUklUWV9XQVJOSU5HEAISEQoNU0VWRVJJVFlfTk9URRADIq8BChZDaGVja0Fzc2VydGlvbnNSZXF1ZXN0Eg0KBW5hbWVzGAEgAygJEhEKCW1hbmlmZXN0cxgCIAEoCRIMCgRkYXRlGAMgASgJEhEKCW1heF9wYXRocxgEIAEoBRIRCglwYWdlX3NpemUYBSABKAUSEgoKcGFnZV90b2tlbhgGIAEoCRIVCg1pZl9ub25lX21hdGNoGAcgASgJEhQKDHdhaXRfc2Vjb25kcxgIIAEoBSK1AgoXQ2hlY2tBc3NlcnRpb25zUmVzcG9uc2USKwoHcmVzdWx0cxgBIAMoCzIaLmVudGFpbC52MS5Bc3NlcnRpb25SZXN1bHQSJAoIcHJvYmxlbXMYAiADKAsyEi5lbnRhaWwudjEuUHJvYmxlbRIXCg9uZXh0X3BhZ2VfdG9rZW4YAyABKAkSIwoHdmVyc2lvbhgEIAEoCzISLmVudGFpbC52MS5WZXJzaW9uEi0KCXN5bmNlZF9hdBgFIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXASIwoFa2luZHMYBiADKAsyFC5lbnRhaWwudjEuS2luZFN0YXRlEhEKCXRydW5jYXRlZBgHIAEoCBIMCgRldGFnGAggASgJEhQKDG5vdF9tb2RpZmllZBgJIAEoCCKkAwoPQXNzZXJ0aW9uUmVzdWx0Eg4KBm9iamVjdBgBIAEoCRIQCghsb2NhdGlvbhgCIAEoCRITCgtkZXNjcmlwdGlvbhgDIAEoCRIzCgdvdXRjb21lGAQgASgOMiIuZW50YWlsLnYxLkFzc2VydGlvblJlc3VsdC5PdXRjb21lEg8KB21lc3NhZ2UYBSABKAkSDQoFcGF0aHMYBiABKAQSDgoGZmFpbGVkGAcgASgEEg8KB3Vua25vd24YCCABKAQSKgoIZmFpbHVyZXMYCSADKAsyGC5lbnRhaWwudjEuQXNzZXJ0aW9uUGF0aBIxCgpleGNlcHRpb25zGAogAygLMh0uZW50YWlsLnYxLkFzc2VydGlvbkV4Y2VwdGlvbhIPCgdlbmZvcmNlGAsgASgIInQKB091dGNvbWUSFwoTT1VUQ09NRV9VTlNQRUNJRklFRBAAEhIKDk9VVENPTUVfUEFTU0VEEAESEgoOT1VUQ09NRV9GQUlMRUQQAhITCg9PVVRDT01FX1VOS05PV04QAxITCg9PVVRDT01FX0lOVkFMSUQQBCJjCg1Bc3NlcnRpb25QYXRoEgwKBHBhdGgYASABKAkSMwoHb3V0Y29tZRgCIAEoDjIiLmVudGFpbC52MS5Bc3NlcnRpb25SZXN1bHQuT3V0Y29tZRIPCgdtZXNzYWdlGAMgASgJImkKEkFzc2VydGlvbkV4Y2VwdGlvbhIOCgZvYmplY3QYASABKAkSDgoGcmVhc29uGAIgASgJEg8KB2V4cGlyZXMYAyABKAkSEwoLaGFzX2V4cGlyZWQYBCABKAgSDQoFcGF0aHMYBSABKAQiOwoSR2V0VG9wb2xvZ3lSZXF1ZXN0EhEKCXBhZ2Vfc2l6ZRgBIAEoBRISCgpwYWdlX3Rva2VuGAIgASgJIooCChNHZXRUb3BvbG9neVJlc3BvbnNlEiYKBW5vZGVzGAEgAygLMhcuZW50YWlsLnYxLlRvcG9sb2d5Tm9kZRImCgVlZGdlcxgCIAMoCzIXLmVudGFpbC52MS5Ub3BvbG9neUVkZ2USIwoHdmVyc2lvbhgDIAEoCzISLmVudGFpbC52MS5WZXJzaW9uEi0KCXN5bmNlZF9hdBgEIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXASIwoFa2luZHMYBSADKAsyFC5lbnRhaWwudjEuS2luZFN0YXRlEhEKCXRydW5jYXRlZBgGIAEoCBIXCg9uZXh0X3BhZ2VfdG9rZW4YByABKAkiZAoMVG9wb2xvZ3lOb2RlEgoKAmlkGAEgASgNEgwKBG5hbWUYAiABKAkSDQoFbGV2ZWwYAyABKAkSKwoIcG9saWNpZXMYBCADKAsyGS5lbnRhaWwudjEuVG9wb2xvZ3lQb2xpY3kiVgoOVG9wb2xvZ3lQb2xpY3kSDAoEa2luZBgBIAEoCRIkCgZwb2xpY3kYAiABKAsyFC5lbnRhaWwudjEuUG9saWN5UmVmEhAKCGFjY2VwdGVkGAMgASgIIigKDFRvcG9sb2d5RWRnZRIMCgRmcm9tGAEgASgNEgoKAnRvGAIgASgNIhgKFkdldFNlcnZlclN0YXR1c1JlcXVlc3Qi+gEKF0dldFNlcnZlclN0YXR1c1Jlc3BvbnNlEiMKB3ZlcnNpb24YASABKAsyEi5lbnRhaWwudjEuVmVyc2lvbhItCglzeW5jZWRfYXQYAiABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wEiQKBWtpbmRzGAMgAygLMhUuZW50YWlsLnYxLktpbmRTdGF0dXMSJAoIcHJvYmxlbXMYBCADKAsyEi5lbnRhaWwudjEuUHJvYmxlbRINCgVwYXRocxgFIAEoBBIYChBkaXN0aW5jdF9hbnN3ZXJzGAYgASgEEhYKDnNlcnZlcl92ZXJzaW9uGAcgASgJIrUBCgpLaW5kU3RhdHVzEgwKBGtpbmQYASABKAkSKQoFc3RhdGUYAiABKA4yGi5lbnRhaWwudjEuS2luZFN0YXRlLlN0YXRlEg8KB3Byb2ZpbGUYAyABKAkSEAoIcG9saWNpZXMYBCABKAQSEAoIYWNjZXB0ZWQYBSABKAQSFAoMbm90X2NvbXB1dGVkGAYgASgJEhQKDHNjb3BlX2xldmVscxgHIAMoCRINCgVuYW1lcxgIIAMoCSI6CgdQcm9ibGVtEhAKCGxvY2F0aW9uGAEgASgJEg8KB21lc3NhZ2UYAiABKAkSDAoEY29kZRgDIAEoCTLpBQoUUG9saWN5SW5zaWdodFNlcnZpY2USQAoHRXhwbGFpbhIZLmVudGFpbC52MS5FeHBsYWluUmVxdWVzdBoaLmVudGFpbC52MS5FeHBsYWluUmVzcG9uc2USTwoMTGlzdFBvbGljaWVzEh4uZW50YWlsLnYxLkxpc3RQb2xpY2llc1JlcXVlc3QaHy5lbnRhaWwudjEuTGlzdFBvbGljaWVzUmVzcG9uc2USTwoMTGlzdEFmZmVjdGVkEh4uZW50YWlsLnYxLkxpc3RBZmZlY3RlZFJlcXVlc3QaHy5lbnRhaWwudjEuTGlzdEFmZmVjdGVkUmVzcG9uc2USUgoNUHJldmlld0NoYW5nZRIfLmVudGFpbC52MS5QcmV2aWV3Q2hhbmdlUmVxdWVzdBogLmVudGFpbC52MS5QcmV2aWV3Q2hhbmdlUmVzcG9uc2USTwoMTGlzdEZpbmRpbmdzEh4uZW50YWlsLnYxLkxpc3RGaW5kaW5nc1JlcXVlc3QaHy5lbnRhaWwudjEuTGlzdEZpbmRpbmdzUmVzcG9uc2USWAoPQ2hlY2tBc3NlcnRpb25zEiEuZW50YWlsLnYxLkNoZWNrQXNzZXJ0aW9uc1JlcXVlc3QaIi5lbnRhaWwudjEuQ2hlY2tBc3NlcnRpb25zUmVzcG9uc2USTAoLR2V0VG9wb2xvZ3kSHS5lbnRhaWwudjEuR2V0VG9wb2xvZ3lSZXF1ZXN0Gh4uZW50YWlsLnYxLkdldFRvcG9sb2d5UmVzcG9uc2USRgoJTGlzdFBhdGhzEhsuZW50YWlsLnYxLkxpc3RQYXRoc1JlcXVlc3QaHC5lbnRhaWwudjEuTGlzdFBhdGhzUmVzcG9uc2USWAoPR2V0U2VydmVyU3RhdHVzEiEuZW50YWlsLnYxLkdldFNlcnZlclN0YXR1c1JlcXVlc3QaIi5lbnRhaWwudjEuR2V0U2VydmVyU3RhdHVzUmVzcG9uc2VCKlooZW50YWlsLmRldi9jbGllbnRzL2dvL2VudGFpbC92MTtlbnRhaWx2MWIGcHJvdG8z",[so,Pn]);var Dl=ge(Bl,3);var Yl=Jn(Bl,0);var Ee=class{constructor(t){this.value=t}value;listeners=new Set;get(){return this.value}set(t){if(!Object.is(t,this.value)){this.value=t;for(let n of[...this.listeners])n()}}update(t){this.set({...this.value,...t})}subscribe(t){return this.listeners.add(t),()=>this.listeners.delete(t)}};function M(e){let[,t]=W({});return z(()=>{let n=e.get(),o=e.subscribe(()=>t({}));return Object.is(n,e.get())||t({}),o},[e]),e.get()}var G=new Ee({connection:"connecting",failure:"",lostSince:0,syncedAt:0,snapshot:"",status:void 0,incomplete:[],token:"unneeded",denied:""}),Kr="entail-token",je=sessionStorage.getItem(Kr)??"",$r=()=>je!=="";function Xr(e,t){je=e.trim(),t&&je?sessionStorage.setItem(Kr,je):sessionStorage.removeItem(Kr),G.update({token:"unneeded",denied:""}),ke.set(ke.get()+1),xt()}var ke=new Ee(0),yf=e=>async t=>(je&&t.header.set("authorization",`Bearer ${je}`),e(t)),wf=e=>async t=>{try{let n=await e(t);return n.stream||Jr(t.method.name,n.message),n}catch(n){throw Ef(O.from(n),t.header.get("authorization")??""),n}},$l=Yr({baseUrl:window.location.origin,interceptors:[yf,wf],defaultTimeoutMs:3e4}),ie=Kn(Yl,$l),ao=Kn(Ul,$l),Zl=new Map;function Jr(e,t){let n={},o=G.get();if((o.connection==="lost"||o.connection==="connecting")&&(n.connection="polling",n.failure="",o.connection==="lost"&&queueMicrotask(()=>ke.set(ke.get()+1))),o.token!=="unneeded"&&(n.token="unneeded"),t.syncedAt){let s=Number(t.syncedAt.seconds)*1e3+t.syncedAt.nanos/1e6;(s>o.syncedAt||t.version?.epoch!==o.snapshot.split("/")[0])&&(n.syncedAt=s)}if(t.version){let{epoch:s,generation:a}=t.version,l=Zl.get(s);(l===void 0||l<a)&&(Zl.set(s,a),n.snapshot=`${s}/${a}`)}if(e==="GetServerStatus"){n.status=t;let s=n.status.kinds.filter(a=>a.state!==1).map(a=>({kind:a.kind,state:a.state,reason:"",message:""}));Kl("status",s)}else(e==="ListPolicies"||e==="WatchEffectivePolicies"||e==="ListPaths")&&Kl(e,t.kinds??[]);let r=vf();JSON.stringify(r)!==JSON.stringify(o.incomplete)&&(n.incomplete=r),G.update(n)}var Xl=new Map;function Kl(e,t){Xl.set(e,t)}var lt="*";function Hr(e){return e.map(({kind:t,state:n,reason:o,message:r})=>({kind:t,state:n===2?"STALE":n===3?"FORBIDDEN":"UNKNOWN",reason:o,message:r}))}function vf(){let e=new Map;for(let t of Xl.values())for(let n of Hr(t)){let o=e.get(n.kind);(!o||!o.message&&n.message)&&e.set(n.kind,n)}return[...e.values()].sort((t,n)=>t.kind<n.kind?-1:1)}function Ef(e,t){if(e.code===_.Unauthenticated)t===(je?`Bearer ${je}`:"")&&G.update({token:je?"refused":"demanded"});else if(qt(e)){let{connection:n,lostSince:o}=G.get();G.update({connection:"lost",failure:e.rawMessage,lostSince:n==="lost"?o:Date.now()})}}var qt=e=>e.code===_.Unavailable||e.code===_.Unknown&&/fetch|network|load failed|HTTP 5|missing trailer|premature/i.test(e.rawMessage),jr=0,Zr=!1;async function Jl(){if(!Zr){Zr=!0;try{await ie.getServerStatus({},{timeoutMs:1e4}),G.get().denied&&G.update({denied:""})}catch(e){let t=O.from(e);t.code===_.PermissionDenied&&G.update({denied:t.rawMessage})}Zr=!1,window.clearTimeout(jr),jr=window.setTimeout(Jl,kf())}}function kf(){let{connection:e,token:t}=G.get();return document.visibilityState==="hidden"?3e4:t!=="unneeded"?6e4:e==="streaming"?1e4:e==="lost"?2e3:3e3}function xt(){window.clearTimeout(jr),Jl()}document.addEventListener("visibilitychange",()=>{document.visibilityState==="visible"&&xt()});function Hl(e){for(let t of e.details){if(!("type"in t)||!t.type.endsWith("google.rpc.ErrorInfo")||!("value"in t))continue;let n=jl(t.value),o=n.filter(([a])=>a===3).map(([,a])=>jl(a)),r=a=>new TextDecoder().decode(a??new Uint8Array),s=o.find(a=>r(a.find(([l])=>l===1)?.[1])==="nearest");return{reason:r(n.find(([a])=>a===1)?.[1]),nearest:r(s?.find(([a])=>a===2)?.[1])}}return{reason:"",nearest:""}}function jl(e){let t=[],n=0,o=()=>{let r=0;for(let s=0;n<e.length;s+=7){let a=e[n++];if(r+=(a&127)*2**s,a<128)break}return r};for(;n<e.length;){let r=o();if(r%8!==2)return t;let s=o();t.push([Math.floor(r/8),e.subarray(n,n+s)]),n+=s}return t}function xe(e,t){let n={question:e,data:void 0,error:void 0,loading:!0,previous:void 0},[o,r]=W(n),s=M(ke),a=pe(t);return a.current=t,z(()=>{let l=new AbortController,c="",d=G.get().snapshot,u=0,f=0,m=0,p=!1,h=async()=>{p=!0,u=Date.now(),r(w=>w.question===e?{...w,loading:!0}:n);try{let w=await Qr(()=>a.current(l.signal));if(l.signal.aborted)return;c=w.version?`${w.version.epoch}/${w.version.generation}`:"",r(v=>({question:e,data:w,error:void 0,loading:!1,previous:v.question===e?v.data:void 0}))}catch(w){if(l.signal.aborted)return;c="",r(v=>({...v,question:e,error:O.from(w),loading:!1}))}f=Date.now()-u,p=!1,y()},y=()=>{let{snapshot:w}=G.get();p||w===d||l.signal.aborted||(d=w,w!==c&&(window.clearTimeout(m),m=window.setTimeout(h,Math.max(30,u+Math.max(1e3,4*f)-Date.now()))))},b=G.subscribe(y);return h(),()=>{b(),window.clearTimeout(m),l.abort()}},[e,s]),o.question===e?o:n}async function Qr(e){for(let t=4;;t-=1)try{return await e()}catch(n){if(O.from(n).code!==_.Aborted||t===0)throw n;await new Promise(o=>window.setTimeout(o,200))}}var St=new Ee([]),xf=300,Sf=1,es=new Ee({all:!1,prefixes:[]}),ts=3e3,co=new Ee([]);function ze(e){let t=e.join(`
`);z(()=>(co.set(e.slice(0,1e3)),()=>co.set([])),[t])}var zl=e=>new Map(e.map(t=>[`${t.kind}.${t.group}`,t]));function zr(e,t){let n=e.find(o=>o.unit===t||o.unit==="*")??e.find(o=>t.startsWith(`${o.unit}.`));return n?n.object||n.policies.map(o=>o.namespace?`${o.namespace}/${o.name}`:o.name).join(", "):""}function Nf(e,t){let n=Dr(e?.specJson),o=Dr(t?.specJson),r=[];for(let l of new Set([...n.keys(),...o.keys()])){let c=o.has(l)?zr(t.origins,l):zr(e.origins,l),d=n.has(l)?zr(e.origins,l):"";(n.get(l)!==o.get(l)||o.has(l)&&c!==d)&&r.push({unit:l,before:n.get(l),after:o.get(l),by:c})}let s=[];t?.unknown&&!e?.unknown&&s.push(`not known: ${t.unknown.message}`),e?.unknown&&!t?.unknown&&s.push("known again");let a=l=>new Map((l?.rejected??[]).map(c=>[`${c.policy?.namespace}/${c.policy?.name}`,c]));for(let[l,c]of a(t))a(e).has(l)||s.push(`${l} is rejected (${c.reason})`);for(let l of a(e).keys())a(t).has(l)||s.push(`${l} is no longer rejected`);return!r.length&&!s.length&&s.push("other policies are attached"),{values:r,note:s.join("; ")}}var uo=class{bodies=new Map;paths=new Map;changed=new Map;fresh=!1;former;apply(t){t.reset&&(this.paths.size&&(this.former=new Map([...this.paths.keys()].map(o=>[o,this.policiesOf(o)]))),this.bodies.clear(),this.paths.clear(),this.changed.clear(),this.fresh=!0);for(let o of t.bodies)this.bodies.set(o.number,o.policies);for(let{path:o,body:r}of t.paths)this.note(o),this.paths.set(o,r);for(let o of t.removedPaths)this.note(o),this.paths.delete(o);if(!t.complete)return[];if(this.former){for(let o of new Set([...this.former.keys(),...this.paths.keys()]))this.changed.set(o,this.former.get(o));this.fresh=!1}let n=this.fresh?[]:this.differences();this.changed.clear(),this.fresh=!1,this.former=void 0;for(let o of t.removedBodies)this.bodies.delete(o);return n}interrupt(){if(this.former||this.fresh||this.changed.size){let t=this.former??new Map;this.bodies.clear(),this.paths.clear(),this.changed.clear();let n=0;for(let[o,r]of t)this.bodies.set(n+=1,r),this.paths.set(o,n);this.former=void 0,this.fresh=!1}}policiesOf=t=>this.bodies.get(this.paths.get(t)??-1);note(t){!this.fresh&&!this.changed.has(t)&&this.changed.set(t,this.policiesOf(t))}differences(){let t=new Map,n=(r,s,a)=>{let l=JSON.stringify([r,a]),c=t.get(l);c?c.paths.push(s):t.set(l,{id:Sf++,time:Date.now(),kind:r,paths:[s],...a})},o=new Map;for(let[r,s]of this.changed){let a=this.policiesOf(r);if(s!==a)if(s===void 0)n("",r,{values:[],note:"new path"});else if(a===void 0)n("",r,{values:[],note:"path removed"});else{let l=o.get(s);l||o.set(s,l=new Map);let c=l.get(a);if(!c){let[d,u]=[zl(s),zl(a)];c=[];for(let f of new Set([...d.keys(),...u.keys()]))d.get(f)?.etag!==u.get(f)?.etag&&c.push([f,Nf(d.get(f),u.get(f))]);l.set(a,c)}for(let[d,u]of c)n(d,r,u)}}return[...t.values()]}},io,ql="",qr={prefixes:"",answers:new uo};async function Af(e,t){let n=1e3;qr.prefixes!==e.join(`
`)&&(qr={prefixes:e.join(`
`),answers:new uo});let{answers:o}=qr;for(;!t.aborted;){o.interrupt();try{let r=ao.watchEffectivePolicies({prefixes:e},{signal:t,timeoutMs:0});for await(let s of r){let a=o.apply(s);s.complete&&(n=1e3,a.length&&St.set([...a.reverse(),...St.get()].slice(0,xf)),Jr("WatchEffectivePolicies",s),G.update({connection:"streaming"}))}}catch(r){if(t.aborted)return;let{code:s}=O.from(r);G.get().connection==="streaming"&&G.update({connection:"polling"}),[_.PermissionDenied,_.Unauthenticated,_.Unimplemented,_.ResourceExhausted].includes(s)&&(n=6e4)}await new Promise(r=>window.setTimeout(r,n)),n=Math.min(n*2,3e4)}}function lo(){let{status:e,token:t}=G.get(),n=document.visibilityState==="visible",o=e!==void 0&&Number(e.paths)<=ts,r=o?[]:co.get(),s=n&&e&&t==="unneeded"&&(o||r.length)?JSON.stringify([o,r,ke.get()]):"";if(s!==ql){if(ql=s,io?.abort(),io=void 0,es.set({all:s!==""&&o,prefixes:r}),!s){G.get().connection==="streaming"&&G.update({connection:"polling"});return}io=new AbortController,Af(r,io.signal)}}function Ql(){co.subscribe(lo),G.subscribe(lo),ke.subscribe(lo),document.addEventListener("visibilitychange",lo)}function ns(e){let t=e.replace(/^#\/?/,""),n=t.indexOf("?");return{segments:(n<0?t:t.slice(0,n)).split("/").filter(Boolean).map(_f),query:new URLSearchParams(n<0?"":t.slice(n+1))}}function _f(e){try{return decodeURIComponent(e)}catch{return e}}var re=new Ee(ns(window.location.hash));window.addEventListener("hashchange",()=>re.set(ns(window.location.hash)));function B(e,t={}){let n=new URLSearchParams;for(let[r,s]of Object.entries(t))s&&n.set(r,s);let o=n.toString();return`#/${e.map(encodeURIComponent).join("/")}${o?`?${o}`:""}`}function Nt(e){window.location.hash=e}function le(e){let{segments:t,query:n}=re.get(),o={...Object.fromEntries(n),...e};history.replaceState(null,"",B(t,o)),re.set(ns(window.location.hash))}function q(e){let t=e.indexOf("/");if(t<0)return{kind:"",namespace:"",name:e};let n=e.slice(0,t),o=e.slice(t+1),r,s=o.indexOf("#");s>=0&&(r=o.slice(s+1),o=o.slice(0,s));let a=o.indexOf("/"),l=a<0?"":o.slice(0,a);return{kind:n,namespace:l,name:o.slice(a+1),section:r}}function os(e){let t=e.namespace?`${e.namespace}/${e.name}`:e.name;return`${e.kind}/${t}${e.section===void 0?"":`#${e.section}`}`}function ye(e){let t=e.indexOf(".");return t<0?[e,""]:[e.slice(0,t),e.slice(t+1)]}var rs=e=>e.replace(/^([^.:]+):[^.]*/,"$1"),At=e=>/route$/i.test(ye(e)[0]);function Ae(e,t={}){let{kind:n,namespace:o,name:r,section:s}=q(e),a=[At(n)?"route":"object",n];return o&&a.push(o),a.push(r),s!==void 0&&(o||a.push(""),a.push(s)),B(a,t)}function ec(e){let[t="",n="",o,r]=e;return o===void 0?`${t}/${n}`:os({kind:t,namespace:n,name:o,section:r})}function $e(e,t={}){return B(["path",...e.split("/")],t)}function _t(e,t){let n=["policy",e];return t.namespace&&n.push(t.namespace),B([...n,t.name])}var qe=e=>e.namespace?`${e.namespace}/${e.name}`:e.name;function Se(e){let t=e.split("/"),n=[],o=0,r="",s="",a="",l="",c=(d,u,f,m)=>{o+=m,n.push({level:d,object:u,label:f,path:t.slice(0,o).join("/")})};for(;o<t.length;){let[d,u,f,m]=t.slice(o,o+4);if(d==="gatewayclasses"&&u)c("GatewayClass",`GatewayClass/${u}`,u,2);else if(d==="namespaces"&&u)c("Namespace",`Namespace/${u}`,u,2);else if(d==="gateways"&&u&&f)r=`Gateway/${u}/${f}`,c("Gateway",r,`${u}/${f}`,3);else if(d==="listenersets"&&u&&f)r=`ListenerSet/${u}/${f}`,c("ListenerSet",r,`${u}/${f}`,3);else if(d==="listeners"&&u)c("Listener",`${r}#${u}`,u,2);else if(d==="routes"&&u&&f&&m)a=`${u}/${f}/${m}`,c("Route",a,`${f}/${m}`,4);else if(d==="rules"&&u)c("RouteRule",`${a}#${u}`,u,2);else if(d==="backends"&&u&&f&&m)s=`${u}/${f}/${m}`,c("Backend",s,`${f}/${m}`,4);else if(d==="ports"&&u)s?c("BackendPort",`${s}#${u}`,u,2):c("ServicePort",`${l}#${u}`,u,2);else if(d==="mesh"&&u&&f==="services"&&m&&t[o+4])l=`Service/${m}/${t[o+4]}`,c("Service",l,`${m}/${t[o+4]}`,5);else break}return n}function po(e){let t=Se(e).filter(n=>["Gateway","ListenerSet","Listener","Service","ServicePort"].includes(n.level)).pop();return t?t.path:e}var If={RouteRule:"Rule",BackendPort:"Port",ServicePort:"Port"},Ge=e=>If[e]??e;var Tf=Symbol.for("pv"),Rf=0;function i(e,t,n,o,r,s){t||(t={});var a,l,c=t;if("ref"in c&&typeof e!="function")for(l in c={},t)l=="ref"?a=t[l]:c[l]=t[l];var d={type:e,props:c,key:n,ref:a,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Tf,__v:--Rf,__i:-1,__u:0};return(r||s)&&(d.__source=r,d.__self=s),j.vnode&&j.vnode(d),d}var ss=/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu,tc=e=>`U+${e.codePointAt(0).toString(16).toUpperCase().padStart(4,"0")}`,fe=e=>e.replace(ss,t=>`<${tc(t)}>`);function E({children:e}){let t=e??"";if(t.search(ss)<0)return i("bdi",{children:t});let n=[],o=0;for(let r of t.matchAll(ss))n.push(t.slice(o,r.index),i("span",{class:"hidden-character",children:tc(r[0])})),o=r.index+r[0].length;return n.push(t.slice(o)),i("bdi",{children:n})}function Q({kind:e}){let[t,n]=ye(e);return i("span",{class:"kind",children:[i(E,{children:t}),n&&i("span",{class:"group",children:i(E,{children:`.${n}`})})]})}function me({kind:e,policy:t}){return i("a",{class:"name",href:_t(e,t),children:i(E,{children:qe(t)})})}function te({object:e,withKind:t=!0}){let{kind:n,namespace:o,name:r,section:s}=q(e);return!n||!r?i(E,{children:e.replace(/\/$/,"")}):i("a",{class:"name",href:Ae(e),children:[t&&i("span",{class:"quiet",children:[i(E,{children:n})," "]}),i(E,{children:o?`${o}/${r}`:r}),s!==void 0&&i(A,{children:[i("span",{class:"quiet",children:"#"}),i(E,{children:s})]})]})}function Qt({json:e}){let t=Br(e);return t.length===1?i("code",{class:t[0].unit||/^[[{]/.test(t[0].text)?"value":"value scalar",children:i(E,{children:t[0].text})}):i("pre",{class:"value",children:t.map(n=>i("div",{children:["  ".repeat(n.indent),i(E,{children:n.text})]}))})}var V=(e,t,n=`${t}s`)=>`${e.toLocaleString("en-US")} ${Number(e)===1?t:n}`;function X({children:e,text:t}){return z(()=>{document.title=`${fe(t)} - entail console`},[t]),i("h1",{id:"title",tabIndex:-1,children:e??i(E,{children:t})})}function Z({tone:e,title:t,children:n}){return i("div",{class:`note ${e}`,children:[t&&i("p",{class:"note-title",children:t}),n]})}function We({error:e}){let{token:t}=M(G),{reason:n,nearest:o}=Hl(e);return e.code===_.Unauthenticated?i(Z,{tone:"unknown",title:"The server demands a token",children:i("p",{children:t==="refused"?"It does not accept the one that you entered.":"Enter one to see this page."})}):e.code===_.PermissionDenied?i(Z,{tone:"error",title:"You may not see this",children:[i("p",{children:i(E,{children:e.rawMessage})}),i("p",{children:["The answer contains only objects that your account may ",i("code",{children:"get"}),". Whoever manages the rights in the cluster can permit more."]})]}):n==="NotOnAPath"?i(Z,{tone:"info",title:"No path goes through it",children:i("p",{children:i(E,{children:e.rawMessage})})}):i(Z,{tone:qt(e)?"unknown":"error",title:Cf(e,n),children:[i("p",{children:i(E,{children:e.rawMessage})}),o&&i("p",{children:["The nearest path that exists: ",i(Ie,{path:o})]}),qt(e)?i("p",{children:"The page asks again by itself."}):[_.DeadlineExceeded,_.ResourceExhausted,_.Aborted,_.Internal,_.Unknown].includes(e.code)&&i("p",{children:i("button",{onClick:()=>ke.set(ke.get()+1),children:"Ask again"})})]})}function Cf(e,t){if(qt(e))return"No answer";let o={[_.NotFound]:"Not found",[_.InvalidArgument]:"The request is not valid",[_.Aborted]:"The data changes too often to list it",[_.ResourceExhausted]:"Too much for one answer",[_.DeadlineExceeded]:"The answer took too long",[_.Unimplemented]:"The server does not have this call"}[e.code]??`Error: ${_[e.code]}`;return t&&t!=="NotFound"?`${o} (${t})`:o}function _e({live:e,children:t}){return i(A,{children:[e.error&&i(We,{error:e.error}),e.error&&e.data&&i("p",{class:"quiet",children:"Below is the last answer."}),e.data!==void 0?t(e.data):!e.error&&i(ct,{})]})}function ct({what:e="Loading"}){return i("p",{class:"loading",role:"status",children:e})}function as({state:e}){return i("span",{class:`badge ${e==="STALE"?"stale":"unknown"}`,children:e})}var Pf={STALE:"Answers use the last state that was read.",FORBIDDEN:"The server may not read the kind. That an answer has no policy of it means nothing.",UNKNOWN:"Its policies cannot be interpreted. That an answer has no policy of it means nothing."};function is({kinds:e}){return e.length?i("ul",{class:"incomplete",children:e.map(({kind:t,state:n,reason:o,message:r})=>i("li",{children:[i(as,{state:n})," ",t===lt?"all kinds":i(Q,{kind:t}),o&&i("span",{class:"quiet",children:[" ",o]}),i("div",{children:[r&&i(A,{children:[i(E,{children:r}),"."," "]}),i("span",{class:"quiet",children:Pf[n]})]})]},t))}):null}function we({kinds:e,truncated:t,unread:n}){return i(A,{children:[e.length>0&&i(Z,{tone:"unknown",title:"This answer is not complete",children:i(is,{kinds:Hr(e)})}),t&&i(Z,{tone:"unknown",title:"This answer does not contain everything",children:i("p",{children:"There is more than a reply holds, or rights to single objects were left unchecked because there are too many."})}),n&&n.length>0&&i(Z,{tone:"info",title:"Parameters that are not read",children:[i("ul",{children:n.map(o=>i("li",{children:[i(E,{children:o.object})," refers to ",i(Q,{kind:o.kind})," ",i(E,{children:o.namespace?`${o.namespace}/${o.name}`:o.name}),"."]}))}),i("p",{class:"quiet",children:"What they set is not part of answers."})]})]})}function Ie({path:e,without:t="",link:n=!0}){let o=Se(e),r=o.filter(a=>a.object.toLowerCase()!==t.toLowerCase()),s=o.length?(r.length?r:o).map((a,l)=>i(A,{children:[l>0&&i("span",{class:"crumb-mark","aria-hidden":"true",children:" › "}),i("span",{class:"crumb",title:fe(`${Ge(a.level)} ${a.object}`),children:[i("span",{class:"quiet",children:[Ge(a.level).toLowerCase()," "]}),i(E,{children:a.label})]})]})):i(E,{children:e});return n?i("a",{class:"crumbs",href:$e(e),children:s}):i("span",{class:"crumbs",children:s})}function Ue({paths:e,without:t,first:n=2}){let[o,r]=W(n),s=e.length-o;return i("ul",{class:"paths",children:[e.slice(0,o).map(a=>i("li",{children:i(Ie,{path:a,without:t})},a)),s>0&&i("li",{children:i("button",{class:"link",onClick:()=>r(o+50),children:s>50?`show 50 of ${s.toLocaleString("en-US")} more paths`:`show ${s} more ${s===1?"path":"paths"}`})})]})}var Be=e=>B(["code",e]),Lf={"more specific default":"E070","more specific override":"E071","less specific override":"E072",older:"E073",newer:"E074",unset:"E075","deleted by null":"E076","condition false":"E077","beyond the closest parent":"E078","own field of the object":"E079","missing reference":"E026","a more specific target takes its part whole":"E081","override of the same policy":"E082"};function nc({reason:e}){let t=Lf[e];return t?i("a",{class:"reason",href:Be(t),children:e}):i("span",{class:"reason",children:i(E,{children:e})})}function fo({items:e,step:t=100,children:n}){let[o,r]=W(t);return i(A,{children:[n(e.slice(0,o)),e.length>o&&i("p",{children:i("button",{onClick:()=>r(o+t),children:["Show ",Math.min(t,e.length-o).toLocaleString("en-US")," of ",(e.length-o).toLocaleString("en-US")," more"]})})]})}var Qe=e=>new Date(e).toLocaleTimeString([],{hour12:!1});function ls(e){let t=Math.max(0,Math.round(e/1e3));return t<120?`${t} s`:t<7200?`${Math.round(t/60)} min`:t<172800?`${Math.round(t/3600)} h`:`${Math.round(t/86400)} days`}var oc={0:["not checked","unknown"],1:["passed","good"],2:["failed","bad"],3:["not known","unknown"],4:["invalid","bad"]},cs=[2,4,3,0,1];async function Gf(e){let t=await ie.checkAssertions({maxPaths:50},{signal:e});for(;t.nextPageToken&&t.results.length<2e3;){let n=await ie.checkAssertions({maxPaths:50,pageToken:t.nextPageToken},{signal:e});t.results.push(...n.results),t.nextPageToken=n.nextPageToken}return t}function rc(){let e=xe("assertions",Gf);return i(A,{children:[i(X,{text:"Assertions"}),i(_e,{live:e,children:t=>{let n=[...t.results].sort((r,s)=>cs.indexOf(r.outcome)-cs.indexOf(s.outcome)),o=r=>n.filter(s=>s.outcome===r).length;return i(A,{children:[i(we,{kinds:t.kinds,truncated:t.truncated||!!t.nextPageToken}),t.problems.map(r=>i(Z,{tone:"error",title:r.location,children:i(E,{children:r.message})})),n.length?i("p",{role:"status",children:[V(n.length,"assertion"),":"," ",cs.filter(o).map(r=>`${o(r)} ${oc[r][0]}`).join(", ")]}):i("p",{children:"There are no assertions. An EffectivePolicyAssertion or ClusterEffectivePolicyAssertion says what the effective policies of some paths must be like; the server checks it after every change."}),i("ul",{class:"cards",children:n.map(r=>i(Vf,{result:r},r.object))})]})}})]})}function Vf({result:e}){let[t,n]=oc[e.outcome]??["not known","unknown"],o=Number(e.paths)-Number(e.failed)-Number(e.unknown);return i("li",{children:[i("h2",{class:"small-title",children:[i("span",{class:`badge ${n}`,children:t})," ",i(E,{children:e.object}),e.enforce&&i("span",{class:"badge",title:"Changes that break it are denied",children:"enforced"})]}),e.description&&i("p",{children:i(E,{children:e.description})}),e.message&&i("p",{children:i(E,{children:e.message})}),e.outcome!==4&&i("p",{class:"quiet",children:["About ",V(e.paths,"path"),": ",o," as expected or excepted, ",Number(e.failed)," not, ",Number(e.unknown)," not known"]}),e.failures.length>0&&i("ul",{class:"failures",children:[e.failures.map(r=>i("li",{children:[i(Ie,{path:r.path}),i("div",{children:[r.outcome===3&&i("span",{class:"badge unknown",children:"not known"})," ",i(E,{children:r.message})]})]})),Number(e.failed)+Number(e.unknown)>e.failures.length&&i("li",{class:"quiet",children:["and ",Number(e.failed)+Number(e.unknown)-e.failures.length," more"]})]}),e.exceptions.length>0&&i("ul",{class:"small",children:e.exceptions.map(r=>i("li",{children:["Excepted: ",i(te,{object:r.object}),", ",V(r.paths,"path"),r.expires&&` until ${r.expires}`,": ",i(E,{children:r.reason}),r.hasExpired&&i("a",{class:"badge bad",href:Be("E093"),children:"expired"})]}))}),e.location&&i("p",{class:"quiet small",children:i(E,{children:e.location})})]})}function sc(){let e=M(St),{all:t}=M(es),{connection:n}=M(G);return i(A,{children:[i(X,{text:"Changes"}),i("p",{class:"quiet",children:"Changes of effective policies since this tab was opened, the latest first."}),!t&&i(Z,{tone:"info",title:n==="streaming"||n==="polling"?"Not all paths are followed":"Changes are not followed at present",children:i("p",{children:["With more than ",ts.toLocaleString("en-US")," paths, or without a stream, changes are recorded only for the paths of the page that is open."]})}),!e.length&&i("p",{children:"Nothing has changed so far."}),i("ol",{class:"changes","aria-live":"polite",children:e.map(o=>i("li",{children:[i("time",{children:Qe(o.time)}),i("div",{children:[o.kind?i(Q,{kind:o.kind}):i("strong",{children:o.note}),o.kind&&o.note&&i("span",{class:"quiet",children:[" ",i(E,{children:o.note})]}),o.values.length>0&&i("ul",{children:o.values.map(r=>i("li",{children:[i("code",{children:i(E,{children:r.unit==="*"?"whole policy":r.unit})}),": ",i(E,{children:r.before??"no value"})," ",i("span",{"aria-label":"becomes",children:"→"})," ",i("strong",{children:i(E,{children:r.after??"no value"})}),r.by&&i("span",{class:"quiet",children:[" ",r.after===void 0?"was set by":"set by"," ",i(E,{children:r.by})]})]}))}),i(Ue,{paths:o.paths,first:1})]})]},o.id))})]})}var ac={E001:`# E001 Broken: A document cannot be parsed

Severity: error.

A file has a document that is not valid YAML or JSON, repeats a key, or exceeds a limit such as the size of a
file. The objects of this document are not known, so every answer may lack something: the exit code is 3
unless \`--allow-partial\` is set. A server keeps the last good version of the objects. If it has none, as after the
file was renamed, its answers say that all kinds are STALE (\`InputUnreadable\`).

## Example

A brace is missing:

\`\`\`yaml
apiVersion: v1
kind: Service
metadata: {name: scales, namespace: shop
\`\`\`

## How to mend it

Correct the text at the line of the finding. For templates, such as those of Helm, check the output of \`helm
template\` instead of the templates.

## When to ignore it

Never for files that are applied. Keep files that are no manifests out of the directory, or name the files to
check one by one.`,E002:`# E002 Malformed: A document is not a Kubernetes object

Severity: error.

A document is valid YAML, but the API server would refuse it as an object: \`apiVersion\`, \`kind\` or
\`metadata.name\` is missing, a field of \`metadata\` has the wrong type, or the kind is a misspelt one of the Gateway
API or of entail. The object is left out of all answers.

## Example

The value of a label must be text:

\`\`\`yaml
apiVersion: v1
kind: Service
metadata: {name: scales, namespace: shop, labels: {shelf: 1}}
spec: {ports: [{port: 80}]}
\`\`\`

## How to mend it

Correct the field that the message names; quote numbers and booleans in labels and annotations.

## When to ignore it

For files that are no objects, such as values of Helm, which stand among the manifests: \`--ignore
E002:deploy/values.yaml\`. Kustomizations are not reported.`,E003:`# E003 Unreadable: A file or directory cannot be read

Severity: error.

A file or directory cannot be read: it does not exist, or permissions are missing. What it contains is not
known, so the exit code is 3 unless \`--allow-partial\` is set.

## Example

One of two paths does not exist:

\`\`\`sh
entail lint --manifests examples/bakery nowhere.yaml
\`\`\`

## How to mend it

Correct the path, or the permissions of the file.

## When to ignore it

Only with \`--allow-partial\`, if the file is known to hold nothing that matters.`,E004:`# E004 Duplicate: An object is in the manifests twice

Severity: warning.

Two documents are the same object (kind, namespace and name) with different content. The later one is used:
files in the order of the command line, and of a directory in the order of their names.

## Example

The bakery has a Service \`window\` already:

\`\`\`yaml
apiVersion: v1
kind: Service
metadata: {name: window, namespace: shop}
spec: {ports: [{port: 8081}]}
\`\`\`

## How to mend it

Remove one of the two, or give one of them another name or namespace. For overlays of several environments,
check one environment at a time.

## When to ignore it

If the directory holds several environments on purpose and you know which one is used.`,E005:`# E005 ProfileRefused: A profile is refused

Severity: error.

A PolicyProfile, or the derived profile of a CRD, contradicts itself or has unknown settings. The policies of
its kind are not evaluated: answers say that the kind is UNKNOWN.

## Example

Merging from the top down and two blocks exclude each other:

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: queuepolicies.example.com}
spec: {policy: {group: example.com, kind: QueuePolicy}, fold: TopDown}
\`\`\`

## How to mend it

The message says which setting is wrong; [profiles-reference.md](../profiles-reference.md) describes all of
them.

## When to ignore it

Never: every answer about the kind is incomplete.`,E006:`# E006 LabelContradicts: The policy label of a CRD contradicts the profile

Severity: note.

The label \`gateway.networking.k8s.io/policy\` of a CRD says that its kind is direct or inherited, and the
profile of the kind says the opposite. The profile applies. Many CRDs have a wrong label, so this is a note.

## Example

The policies of Kuadrant are inherited:

\`\`\`yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ratelimitpolicies.kuadrant.io
  labels: {gateway.networking.k8s.io/policy: direct}
spec:
  group: kuadrant.io
  names: {kind: RateLimitPolicy, plural: ratelimitpolicies}
  scope: Namespaced
  versions: []
\`\`\`

## How to mend it

If the CRD is yours, correct the label. If the profile is yours, compare it with what the controller does.

## When to ignore it

If the CRD belongs to another project.`,E007:`# E007 PatternMatchesNothing: A pattern of a profile matches no field of the CRD

Severity: warning.

A setting of a profile names fields of the rules (\`listKeys\`, \`atomicPaths\`, \`reducers\`, or \`fields\` of limits
and targets), and the schema of the CRD has no such field. The setting has no effect, so it is probably
misspelt. For built-in and derived profiles this is a note: the installed CRD may be older or newer.

## Example

The field is called \`backoff\`:

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: queuepolicies.example.com}
spec:
  policy: {group: example.com, kind: QueuePolicy}
  class: Inherited
  effectiveTarget: RouteRule
  rules: {path: spec, defaults: [], overrides: []}
  strategies: [CustomDefaults]
  atomicPaths: [backof]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queuepolicies.example.com}
spec:
  group: example.com
  names: {kind: QueuePolicy, plural: queuepolicies}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        properties: {spec: {properties: {backoff: {properties: {base: {type: string}}}}}}
\`\`\`

## How to mend it

Correct the spelling; the message has the nearest field. [profiles.md](../profiles.md) describes how patterns
are read.

## When to ignore it

If the profile is written for several versions of the CRD.`,E008:`# E008 CrdMissing: The CRD of a policy kind is not among the manifests

Severity: note.

The manifests contain policies of a kind, and not its CustomResourceDefinition. An API server fills in the
defaults of the schema; from files alone they are not known, so a value may be missing. Objects of a cluster
always have their defaults.

## Example

The CRDs of Envoy Gateway are not among the manifests of the bakery:

\`\`\`yaml
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: limits, namespace: shop}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}
  timeout: {http: {requestTimeout: 10s}}
\`\`\`

## How to mend it

Add the CRDs to the manifests: \`kubectl get crd NAME -o yaml\`, or the release of the controller.

## When to ignore it

If the schema of the kind has no defaults in the fields that you use.`,E009:`# E009 UnknownKind: An object looks like a policy, and no profile describes its kind

Severity: warning.

An object has \`spec.targetRef\`, \`spec.targetRefs\` or \`spec.targetSelectors\`, so it looks like a policy, but no
profile describes its kind, and its CRD has no policy label. Its effect is not known, and every path that it
targets is UNKNOWN for its kind.

## Example

Nobody knows this kind:

\`\`\`yaml
apiVersion: example.com/v1
kind: QueuePolicy
metadata: {name: queue, namespace: shop}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}
  size: 10
\`\`\`

## How to mend it

Write a PolicyProfile ([profiles.md](../profiles.md)); with the label on the CRD a profile is derived.

## When to ignore it

If the kind has nothing to do with requests.`,E010:`# E010 ParametersNotRead: Parameters of a Gateway or GatewayClass are not read

Severity: note.

A GatewayClass or a Gateway is configured by an object of a kind without a profile (\`parametersRef\`). entail
does not read it. It may change what all requests get, such as default timeouts. Answers hold beside it.

## Example

The settings are of a kind of their own:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tuned}
spec:
  controllerName: bakery.example/gateway
  parametersRef: {group: example.com, kind: ProxySettings, name: tuned}
\`\`\`

## How to mend it

Look at the object yourself. \`entail verify\` compares with the configuration of the proxy.

## When to ignore it

Nearly always, once you know what the object sets.`,E011:`# E011 IgnoreExpired: An entry of the ignore file has expired

Severity: warning.

An entry of the file of \`--ignore-file\` has a day in \`expires\` that is over. The entry counts no more: the
findings that it left out are reported again.

## Example

The file \`ignore.yaml\`:

\`\`\`yaml
- {code: E030, object: CachePolicy/platform/fresh-daily, reason: until the sale is over, expires: 2024-12-31}
\`\`\`

\`\`\`sh
entail lint --manifests examples/bakery --ignore-file ignore.yaml
\`\`\`

## How to mend it

Mend what the entry left out and remove it, or set a later day with a reason that still holds.

## When to ignore it

Not itself: without \`expires\` an entry has no end.`,E012:`# E012 IgnoreUnused: What is to be ignored was not found

Severity: note.

An entry of the file of \`--ignore-file\`, or an option \`--ignore\`, names a code or an object for which there is
no finding. It may be misspelt, or what it left out has been mended. With \`--kind\` this is not checked.

## Example

No policy of the bakery has a problem with waypoints:

\`\`\`sh
entail lint --manifests examples/bakery --ignore E028
\`\`\`

## How to mend it

Remove the entry, or correct the object: \`Kind/namespace/name\`, as \`lint\` prints it, or a file.

## When to ignore it

If one list is used for several sets of manifests: \`--ignore E012\`.`,E013:`# E013 WrongType: A field of an object has the wrong type

Severity: warning.

A field of a Route, a Gateway, a ListenerSet or a ReferenceGrant is not what the Gateway API asks for, such as text in the
place of a list. It counts as unset, so a Route may be for more hosts and paths than is meant. An API server refuses the
object.

## Example

The hostnames of this route are no list:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: office, namespace: shop}
spec:
  parentRefs: [{name: gw}]
  hostnames: office.bakery.example
\`\`\`

## How to mend it

Correct the field that the message names: write \`[office.bakery.example]\`.

## When to ignore it

Never: the object cannot be applied.`,E020:`# E020 Invalid: A policy is invalid

Severity: error.

A policy is not valid by its profile: it targets a kind or a section that the profile does not allow, names no
target, mixes blocks that exclude each other, or has a field that the profile forbids. The controller would
not accept it. Where several references are wrong, the finding has a place for each.

## Example

A CachePolicy cannot target a Service:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: CachePolicy
metadata: {name: window, namespace: shop}
spec:
  targetRefs:
  - {group: "", kind: Service, name: window}
  ttl: 5m
\`\`\`

## How to mend it

Correct the field that the message names. \`entail profiles KIND\` lists the targets that a built-in kind
allows.

## When to ignore it

If the profile is more strict than the version of the controller that you use; then correct the profile.`,E021:`# E021 TargetNotFound: The target of a reference does not exist

Severity: error.

A reference of a policy names an object, or a section of it, that does not exist in the namespace. The policy
has no effect there. The message has the nearest name.

## Example

The route is called \`bread\`:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: CachePolicy
metadata: {name: crumbs, namespace: baker}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: braed}
  ttl: 5m
\`\`\`

## How to mend it

Correct the name, the namespace of the policy, or \`sectionName\`. If the target is in other manifests, add
them.

## When to ignore it

If the target is created later by another team and the policy waits for it.`,E022:`# E022 RefNotPermitted: A reference into another namespace is not permitted

Severity: error.

A reference leads into another namespace, and its kind does not allow that, or no ReferenceGrant there permits
it. The reference has no effect. For a Route this is a warning.

## Example

The policy is in another namespace than its target:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: CachePolicy
metadata: {name: far, namespace: shop}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: bread, namespace: baker}
  ttl: 5m
\`\`\`

## How to mend it

Move the policy into the namespace of its target, or add a ReferenceGrant there, if the kind allows it.

## When to ignore it

If the grant exists in manifests that are not among the input.`,E023:`# E023 Conflicted: A policy lost its target to another policy

Severity: warning.

Two policies of one kind target the same object, and only one of them can be accepted: mostly the older one.
The other one has no effect there. Its status has the condition Accepted=False/Conflicted.

## Example

ClientTrafficPolicies of Envoy Gateway are not merged:

\`\`\`yaml
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {name: first, namespace: platform, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, name: storefront}
  timeout: {http: {requestReceivedTimeout: 5s}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {name: second, namespace: platform, creationTimestamp: "2026-02-01T00:00:00Z"}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, name: storefront}
  timeout: {http: {requestReceivedTimeout: 9s}}
\`\`\`

## How to mend it

Merge the two into one, or let each target a section of its own.

## When to ignore it

If the newer one is to take over as soon as the older one is deleted.`,E024:`# E024 SelectorNotEvaluated: A policy selects workloads, which are not evaluated

Severity: note.

A policy selects workloads by their labels. Workloads are not nodes of a path, so entail does not know on
which paths the policy acts. Answers hold for all other policies and name this one.

## Example

A policy of Istio for the pods of the cashier:

\`\`\`yaml
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: jwt, namespace: shop}
spec:
  selector: {matchLabels: {app: till}}
  jwtRules: [{issuer: https://id.bakery.example}]
\`\`\`

## How to mend it

Use \`targetRefs\` if the kind has them: Gateways, waypoints and Services can be followed.

## When to ignore it

If selecting workloads is what you want; look at the policy beside the answer.`,E025:`# E025 NotTrusted: The controller does not accept a policy

Severity: error.

The profile has \`trustStatus\`, and the controller set Accepted=False in the status of the policy; or it has
\`whileDeleting: Ignored\`, and the policy is being deleted. The policy takes part nowhere.

## Example

The profile of the kind trusts statuses:

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: queuepolicies.example.com}
spec:
  policy: {group: example.com, kind: QueuePolicy}
  class: Inherited
  effectiveTarget: RouteRule
  rules: {path: spec, defaults: [], overrides: []}
  strategies: [AtomicDefaults]
  trustStatus: true
---
apiVersion: example.com/v1
kind: QueuePolicy
metadata: {name: queue, namespace: shop, generation: 1}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}]
  size: 10
status:
  ancestors:
  - ancestorRef: {group: gateway.networking.k8s.io, kind: Gateway, name: storefront}
    controllerName: example.com/queue
    conditions:
    - {type: Accepted, status: "False", reason: TooSmall, message: too small, observedGeneration: 1}
\`\`\`

## How to mend it

The message repeats what the controller says: \`kubectl describe\` the policy.

## When to ignore it

While the controller is being rolled out and the status is old.`,E026:`# E026 MissingReference: An object that a policy uses is missing

Severity: error.

A policy uses another object, such as a Secret with keys or a Service for authorization, and that is missing,
so its controller does not accept the policy or leaves out a part of it. The reason in the finding is that of
the controller if the profile knows it, and \`Invalid\` otherwise. In explanations (\`missing reference\`) it says
why a value of such a policy is not in the result.

## Example

All Secrets are among the manifests, and this one is not:

\`\`\`yaml
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: users, namespace: shop}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}
  basicAuth: {users: {name: passwords}}
\`\`\`

\`\`\`sh
entail lint --manifests examples/bakery --assume-complete Secret
\`\`\`

## How to mend it

Create the object, correct its name, or add a ReferenceGrant if it is in another namespace.

## When to ignore it

If the object is created by another tool; then do not use \`--assume-complete\` for its kind.`,E027:`# E027 UnusualValue: A policy has an unusual value

Severity: note.

A value of a policy is readable and probably not meant, such as a group with a version. It is read as if it
were written without.

## Example

A group has no version:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: CachePolicy
metadata: {name: versioned, namespace: baker}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io/v1, kind: HTTPRoute, name: bread}
  ttl: 5m
\`\`\`

## How to mend it

Write the value as the message says: other programs may read it in another way.

## When to ignore it

If you cannot change the object.`,E028:`# E028 NoWaypoint: A policy targets a Service without a waypoint

Severity: warning.

A policy targets a Service, its kind acts on mesh traffic through a waypoint, and the Service has none:
neither it nor its Namespace has the label that names a Gateway as waypoint. Nobody applies the policy to
requests of the mesh.

## Example

No Service of the bakery has a waypoint:

\`\`\`yaml
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: till, namespace: shop}
spec:
  action: DENY
  targetRefs: [{group: "", kind: Service, name: till}]
\`\`\`

## How to mend it

Label the Service or its Namespace, such as \`istio.io/use-waypoint: waypoint\`, and create that Gateway.

## When to ignore it

If the waypoint is added later on purpose.`,E030:`# E030 Overridden: Other policies override all of a policy

Severity: note.

Other policies override all fields of a policy, on every path that it reaches. Defaults yield to more specific
policies and overrides win over less specific ones: that is how they are meant, so this is a note. A policy
without any effect may still be a surprise for its author. If fields of it are set by nobody else, there is a
finding E032, too.

## Example

The bakery has one: \`fresh-daily\` is the default of the storefront, and by now every route has a policy of its
own:

\`\`\`sh
entail lint --manifests examples/bakery
\`\`\`

## How to mend it

\`entail reach KIND/NAMESPACE/NAME\` shows by whom it is overridden where. Delete the policy, or turn its
defaults into overrides if they are to win.

## When to ignore it

If the policy is the default for routes to come.`,E031:`# E031 NoScope: The targets of a policy are on no path

Severity: warning.

A policy is accepted, and its targets are on no path: no Route leads to the Service, or no Gateway serves the
Route, or the kind does not act there. It has no effect. Callers of a server who may not see all paths are
told that it is on no path that they may see.

## Example

No route leads to this Service:

\`\`\`yaml
apiVersion: v1
kind: Service
metadata: {name: spare, namespace: shop}
spec: {ports: [{port: 8080}]}
---
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: spare, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: spare}]
  defaults: {attempts: 2}
\`\`\`

## How to mend it

Attach the policy to what requests reach; \`entail topology\` shows the paths. Findings E052 to E059 say why a
Route is not attached.

## When to ignore it

If the Route is added later.`,E032:`# E032 SilentLoss: A field of a policy is lost, and no other policy sets it

Severity: warning.

A field that a policy sets is in no result on some paths, and no other policy sets it there: a more specific
policy replaces the whole and lacks the field, because the strategy is atomic. Nobody decided for another
value, so this is often a mistake. The message has the paths.

## Example

The policies of the shop and the kitchen replace this default as a whole, and have no \`backend.request\`:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: TimeoutPolicy
metadata: {name: back, namespace: platform}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, name: backdoor}
  defaults:
    strategy: atomic
    client: {request: 30s, header: 5s}
    backend: {request: 20s}
\`\`\`

## How to mend it

Use a strategy that merges, repeat the field in the policy that wins, or make it an override. \`entail explain
PATH\` shows which policy wins.

## When to ignore it

If the policy that wins is to replace everything.`,E033:`# E033 FoldOrder: The result depends on the direction of merging

Severity: note.

entail merges from the most specific policy up, as controllers do. Merging from the least specific one down,
as pictures of GEP-713 draw it, would give another result on these paths. The answer is right for the
controllers that entail knows; another implementation may differ.

## Example

An atomic policy stands between two that merge:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: gateway, namespace: platform}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: storefront}]
  overrides: {strategy: merge, attempts: 1}
---
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: route, namespace: baker}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: bread}]
  defaults: {strategy: atomic, backoff: 1s}
---
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: service, namespace: baker}
spec:
  targetRefs: [{group: "", kind: Service, name: loaves}]
  defaults: {strategy: merge, attempts: 3}
\`\`\`

## How to mend it

Use one strategy on all levels of a path.

## When to ignore it

If all your controllers merge as the specification (6.2) says.`,E040:`# E040 ControllerUnknown: It is not known which controller serves a Gateway

Severity: warning.

It is not known which controller serves a Gateway: its GatewayClass is missing, or no profile lists its
\`controllerName\`. Whether policies with \`controllers\` act there is not known, so answers are UNKNOWN for their
kinds and have no values.

## Example

The class of the bakery belongs to no controller that has such policies:

\`\`\`yaml
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: limits, namespace: shop}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}
  timeout: {http: {requestTimeout: 10s}}
\`\`\`

## How to mend it

Add the GatewayClass to the manifests, or set \`--assume-class CLASS=CONTROLLER\`. For a controller with a name
of its own, set \`--controller NAME=GROUP\`, or add a ControllerAlias.

## When to ignore it

Not if the policy matters: its values are not part of any answer.`,E041:`# E041 NoProfile: No profile describes the kind of a policy

Severity: warning.

An object of a kind without a profile targets something on the path. What it does is not known, so the answer
for its kind is UNKNOWN. \`lint\` reports the object itself as E009.

## Example

With the object of E009, this command names the kind first and ends with exit code 3:

\`\`\`text
entail get httproute/shop/shop --manifests examples/bakery
\`\`\`

## How to mend it

Write a PolicyProfile for the kind ([profiles.md](../profiles.md)).

## When to ignore it

If the kind has nothing to do with what you ask: select kinds with \`--kind\`.`,E042:`# E042 FilterUnknown: No profile describes the kind of a filter

Severity: warning.

A filter of a route rule, or of a backendRef, is an extension (\`ExtensionRef\`) of a kind without a profile.
What it does to requests of this rule is not known, so the answer for its kind is UNKNOWN there.

## Example

A rule with a filter of an unknown kind:

\`\`\`text
filters:
- type: ExtensionRef
  extensionRef: {group: example.com, kind: Queue, name: long}
\`\`\`

## How to mend it

Write a PolicyProfile with \`attach: [filter]\` for the kind.

## When to ignore it

If the filter does not change what you ask about: select kinds with \`--kind\`.`,E043:`# E043 DelegationNotFollowed: A rule delegates to other Routes, and that is not followed

Severity: warning.

A rule of a Route delegates to other Routes, and that is not followed: the Routes lead back to it, there are
too many, the controller is not known to follow delegation, or it is not known how a kind merges policies
there. At and below the rule effective policies of such kinds are UNKNOWN.

## Example

The child delegates back to its parent:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kgateway}
spec: {controllerName: kgateway.dev/kgateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: deep, namespace: shop}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: parent, namespace: shop}
spec:
  parentRefs: [{name: deep}]
  rules:
  - backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: shop}
spec:
  rules:
  - backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: parent}]
\`\`\`

## How to mend it

Remove the circle, or set on the Route of the rule an annotation whose meaning the profile knows. The message
says what prevents it.

## When to ignore it

Only if no policies act below the rule.`,E044:`# E044 ReferenceNotChecked: It is not known whether an object that a policy uses exists

Severity: warning.

A policy lets requests pass if an object that it uses is missing, and it is not known whether that exists: its
kind is not read, or its namespace is not among the manifests. The answer holds if the object exists.

## Example

A SecurityPolicy with \`extAuth.failOpen: true\` and a Service in a namespace of which nothing is among the
manifests:

\`\`\`text
extAuth:
  failOpen: true
  grpc: {backendRefs: [{name: authority, namespace: auth, port: 80}]}
\`\`\`

## How to mend it

Add the object to the manifests, or permit the server to read its kind; \`--assume-complete KIND\` says that all
objects of a kind are there.

## When to ignore it

If you know that the object exists.`,E045:`# E045 PolicyUnreadable: Parts of a policy cannot be read

Severity: warning.

A policy is nested too deep or exceeds another bound, so parts of it cannot be read. It is invalid here, but
its controller may be able to read it. Answers hold for all other policies and name this one.

## Example

A policy with more than a hundred levels of objects, as generators write them.

## How to mend it

Make the policy smaller: split it, or remove levels that hold one field.

## When to ignore it

Never: what the policy asks for is not known.`,E046:`# E046 BackendFilterNotEvaluated: A filter of a backendRef references a policy

Severity: warning.

A filter of a backendRef references a policy. Its controller may apply it to the requests to this backend alone, which is
no scope that entail computes. Answers of the rule hold for all other policies and name this one.

## Example

A policy of kgateway for one of two backends:

\`\`\`yaml
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: slow, namespace: shop}
spec:
  rateLimit: {local: {tokenBucket: {maxTokens: 1, fillInterval: 1s}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: bread, namespace: shop}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs:
    - name: oven
      port: 80
      filters:
      - type: ExtensionRef
        extensionRef: {group: gateway.kgateway.dev, kind: TrafficPolicy, name: slow}
\`\`\`

## How to mend it

Move the filter to the rule, or give the backend a rule of its own.

## When to ignore it

If the policy is meant for this backend; look at it beside the answer.`,E050:`# E050 ListenerConflict: Listeners of a Gateway conflict

Severity: warning.

Listeners of a Gateway, or of the ListenerSets that it admits, exclude each other on a port: they have the same protocol
and hostname (HTTPS and TLS count as one), or protocols that cannot share a port: HTTP, those with TLS, and TCP. Those of
the Gateway take precedence over those of its sets. Which of the others is served, if one is, depends on the controller.
entail keeps the paths of all of them, and \`entail resolve\` leaves out only those of the same protocol: what they say is in effect nowhere if the controller does not serve the listener.

## Example

Two listeners differ in their names alone:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: twins, namespace: shop}
spec:
  gatewayClassName: bakery
  listeners:
  - {name: left, port: 80, protocol: HTTP}
  - {name: right, port: 80, protocol: HTTP}
\`\`\`

## How to mend it

Give the listeners different ports or, with one protocol, different hostnames; or remove one.

## When to ignore it

Never: the controller reports the Gateway as conflicted.`,E051:`# E051 RouteConflict: Routes of a listener conflict

Severity: warning.

Routes of one listener exclude each other: an HTTPRoute and a GRPCRoute have a hostname in common, or there
are several TCPRoutes or UDPRoutes. Which of them is served depends on the controller. Each Route has one
place for each listener, which names up to three Routes before it.

## Example

The shop already has an HTTPRoute for this name:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: orders, namespace: shop}
spec:
  parentRefs: [{name: storefront, namespace: platform, sectionName: https}]
  hostnames: [shop.bakery.example]
  rules:
  - backendRefs: [{name: till, port: 8080}]
\`\`\`

## How to mend it

Use different hostnames, or listeners of their own.

## When to ignore it

If your controller serves HTTPRoutes and GRPCRoutes of one name together, as it may since Gateway API 1.6.`,E052:`# E052 NoMatchingParent: A parentRef matches no listener

Severity: warning.

A parentRef of a Route names a Gateway or ListenerSet that has no listener with this \`sectionName\` and port,
or a Service that is no root of a mesh, or a Route no rule of which delegates to this one. The Route is not
attached there.

## Example

The listener is called \`https\`:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: rolls, namespace: baker}
spec:
  parentRefs: [{name: storefront, namespace: platform, sectionName: tls}]
  hostnames: [rolls.bakery.example]
  rules: [{backendRefs: [{name: loaves, port: 8080}]}]
\`\`\`

## How to mend it

Correct \`sectionName\` or \`port\`; \`entail topology\` lists the listeners.

## When to ignore it

If the listener is added later.`,E053:`# E053 NotAllowedByListeners: The listener does not admit a Route

Severity: warning.

The listener does not admit the Route: by \`allowedRoutes.kinds\`, by its protocol, or by
\`allowedRoutes.namespaces\`.

## Example

The namespace \`platform\` has not the label of a tenant, which the listener \`https\` asks for:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: inside, namespace: platform}
spec:
  parentRefs: [{name: storefront, sectionName: https}]
  hostnames: [inside.bakery.example]
  rules: [{name: all}]
\`\`\`

## How to mend it

Label the namespace, move the Route, or extend \`allowedRoutes\` of the listener.

## When to ignore it

Never: the Route serves no requests there.`,E054:`# E054 NoMatchingListenerHostname: A Route and its listener have no hostname in common

Severity: warning.

The Route and the listener have hostnames, and none that both accept. The Route is not attached there.

## Example

The listeners of the storefront accept \`*.bakery.example\`:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: rolls, namespace: baker}
spec:
  parentRefs: [{name: storefront, namespace: platform}]
  hostnames: [rolls.example.org]
  rules: [{backendRefs: [{name: loaves, port: 8080}]}]
\`\`\`

## How to mend it

Correct the hostname of the Route, or of the listener. \`*.a.b\` accepts names below \`a.b\`, and not \`a.b\`
itself.

## When to ignore it

If a listener for the name is added later.`,E055:`# E055 GatewayNotFound: The Gateway does not exist

Severity: warning.

A parentRef of a Route or a ListenerSet, a policy or a path names a Gateway that does not exist in this namespace.

## Example

The Gateway is called \`storefront\`:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: rolls, namespace: baker}
spec:
  parentRefs: [{name: storfront, namespace: platform}]
  rules: [{backendRefs: [{name: loaves, port: 8080}]}]
\`\`\`

## How to mend it

Correct the name or the namespace: without \`namespace\`, a parentRef means that of the Route. If the Gateway is
in other manifests, add them.

## When to ignore it

If the Gateway is not among the manifests on purpose.`,E056:`# E056 ListenerSetNotFound: The ListenerSet does not exist

Severity: warning.

A parentRef names a ListenerSet that does not exist, or that does not belong to this Gateway.

## Example

There is no ListenerSet in the bakery:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: rolls, namespace: baker}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}
  rules: [{backendRefs: [{name: loaves, port: 8080}]}]
\`\`\`

## How to mend it

Correct the name or the namespace, or create the ListenerSet.

## When to ignore it

If it is in manifests that are not among the input.`,E057:`# E057 ListenerSetNotAllowed: The Gateway does not admit a ListenerSet

Severity: warning.

The Gateway does not admit the ListenerSet: \`allowedListeners.namespaces\` of the Gateway does not include its
namespace. The default is \`None\`. Routes of the ListenerSet are not attached.

## Example

The storefront admits no ListenerSets:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: extra, namespace: baker}
spec:
  parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: storefront, namespace: platform}
  listeners: [{name: extra, port: 8081, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: rolls, namespace: baker}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}
  rules: [{backendRefs: [{name: loaves, port: 8080}]}]
\`\`\`

## How to mend it

Set \`allowedListeners\` of the Gateway, or move the ListenerSet into an admitted namespace.

## When to ignore it

Never: the Routes serve no requests there.`,E058:`# E058 RouteNotServed: The controller serves another Route of the listener alone

Severity: warning.

The controller serves one UDPRoute or TCPRoute of a listener alone, the oldest, and none with several rules.
This Route is not that one, so it has no path there.

## Example

Envoy Gateway serves the older of two UDPRoutes:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: envoy}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: timers, namespace: shop}
spec: {gatewayClassName: envoy, listeners: [{name: udp, port: 53, protocol: UDP}]}
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: UDPRoute
metadata: {name: first, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {parentRefs: [{name: timers}], rules: [{backendRefs: [{name: till, port: 9100}]}]}
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: UDPRoute
metadata: {name: second, namespace: shop, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {parentRefs: [{name: timers}], rules: [{backendRefs: [{name: till, port: 9100}]}]}
\`\`\`

## How to mend it

Use a listener for each Route, or one rule with several backends.

## When to ignore it

If the Route is to take over as soon as the older one is deleted.`,E059:`# E059 ChildRouteHasHostnames: A child Route has hostnames of its own

Severity: warning.

A rule delegates to a child Route that has hostnames. A child Route takes the hostnames of its parent, so the
controller does not follow the rule to this one.

## Example

The child has a hostname of its own:

\`\`\`yaml
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kgateway}
spec: {controllerName: kgateway.dev/kgateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: deep, namespace: shop}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: parent, namespace: shop}
spec:
  parentRefs: [{name: deep}]
  rules:
  - backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: shop}
spec:
  hostnames: [deep.bakery.example]
  rules: [{backendRefs: [{name: till, port: 8080}]}]
\`\`\`

## How to mend it

Remove \`hostnames\` of the child, or attach it to the Gateway by a parentRef instead.

## When to ignore it

Never: the rule has no backend.`,E060:`# E060 BackendNotFound: The backend does not exist

Severity: warning.

A path names a backend that the rule does not reference, or that is a Service that does not exist. Requests of
the rule get an error from the proxy.

## Example

The Service is called \`loaves\`:

\`\`\`text
entail get gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread/rules/menu/backends/Service/baker/loafs
\`\`\`

## How to mend it

Correct the name in the path, or \`backendRefs\` of the rule. If the Service is in other manifests, add them.

## When to ignore it

If the Service is not among the manifests on purpose.`,E061:`# E061 PortNotFound: The backend has no such port

Severity: warning.

A path names a port that the backendRef does not reference, or that the Service does not have.

## Example

The Service \`loaves\` has the port 8080 alone:

\`\`\`text
entail get .../rules/menu/backends/Service/baker/loaves/ports/80
\`\`\`

## How to mend it

Correct the port in the path, in the backendRef, or in the Service.

## When to ignore it

Never.`,E062:`# E062 GatewayClassNotFound: The GatewayClass does not exist

Severity: warning.

A path names a GatewayClass that does not exist.

## Example

The class is called \`bakery\`:

\`\`\`text
entail get gatewayclasses/bakry --manifests examples/bakery
\`\`\`

## How to mend it

Correct the name. \`entail topology\` lists the classes.

## When to ignore it

If the class is not among the manifests on purpose; \`--assume-class\` names its controller.`,E063:`# E063 NamespaceNotFound: The namespace does not exist

Severity: warning.

A path names a namespace in which there is no object. A namespace exists as soon as an object lives in it.

## Example

The namespace is called \`baker\`:

\`\`\`text
entail get namespaces/bakers --manifests examples/bakery
\`\`\`

## How to mend it

Correct the name, or add the manifests of the namespace.

## When to ignore it

Never.`,E064:`# E064 ListenerNotFound: The listener does not exist

Severity: warning.

A path names a listener that the Gateway or ListenerSet does not have.

## Example

The listeners of the storefront are \`http\` and \`https\`:

\`\`\`text
entail get gateways/platform/storefront/listeners/tls --manifests examples/bakery
\`\`\`

## How to mend it

Correct the name: it is that of the listener, not its port or protocol.

## When to ignore it

Never.`,E065:`# E065 RouteNotFound: The Route does not exist

Severity: warning.

A path, or a rule that delegates, names a Route that does not exist.

## Example

The Route is called \`bread\`:

\`\`\`text
entail get gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/braed
\`\`\`

## How to mend it

Correct the kind, the namespace or the name. If the Route is in other manifests, add them.

## When to ignore it

If the Route is created later.`,E066:`# E066 RuleNotFound: The Route has no such rule

Severity: warning.

A path names a rule that the Route does not have. A rule is named by its \`name\`, or by its number: \`#0\` is the
first one.

## Example

The rules of \`bread\` are \`menu\` and \`order\`:

\`\`\`text
entail get gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread/rules/nope
\`\`\`

## How to mend it

Correct the name or the number; \`entail get httproute/baker/bread\` lists the rules.

## When to ignore it

Never.`,E067:`# E067 NotAPath: A name is not a path of the topology

Severity: warning.

A name is not a path of the topology for another reason: its parts are in the wrong order, or a Route
delegates to itself.

## Example

A rule stands below its Route:

\`\`\`text
entail get gateways/platform/storefront/rules/menu --manifests examples/bakery
\`\`\`

## How to mend it

Follow the order Gateway, listener, Route, rule, backend, port. \`entail get KIND/NAMESPACE/NAME\` finds the
paths of an object.

## When to ignore it

Never.`,E070:`# E070 MoreSpecificDefault: A more specific policy replaces a default

Severity: note.

The value is a default, and a more specific policy on the path sets the same field. That policy wins: defaults
are for those who say nothing.

## Example

Every route of the bakery has its own CachePolicy:

\`\`\`sh
entail explain httproute/baker/bread --kind CachePolicy --manifests examples/bakery
\`\`\`

## How to mend it

To enforce the value, move it into \`overrides\`. To get it back on one path, remove the field from the more
specific policy.

## When to ignore it

Nearly always: this is how defaults are meant.`,E071:`# E071 MoreSpecificOverride: A more specific override wins

Severity: note.

A more specific policy sets the field as an override, and no less specific policy overrides that.

## Example

The route insists on its number of attempts:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: gateway, namespace: platform}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: storefront}]
  defaults: {strategy: merge, attempts: 3}
---
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: route, namespace: baker}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: bread}]
  overrides: {strategy: merge, attempts: 1}
\`\`\`

\`\`\`sh
entail explain httproute/baker/bread --kind RetryPolicy --manifests examples/bakery
\`\`\`

## How to mend it

If the less specific policy is to win, make its value an override, too: of two overrides, the less specific
one wins.

## When to ignore it

If the more specific team may decide.`,E072:`# E072 LessSpecificOverride: A less specific override wins

Severity: note.

A less specific policy, such as that of the Gateway, sets the field as an override. More specific policies
cannot change it.

## Example

No request of the storefront may take longer than ten seconds, so the minute of the shop has no effect there:

\`\`\`sh
entail explain httproute/shop/shop --kind TimeoutPolicy --manifests examples/bakery
\`\`\`

## How to mend it

Ask the owner of the override, whose name is beside the value. On your side nothing can win over it.

## When to ignore it

If the owner of the Gateway is to decide; remove the value to avoid a wrong impression.`,E073:`# E073 Older: An older policy of the same target wins

Severity: note.

Two policies of one kind are attached to the same object, both set the field as an override, and the older one
wins. Policies of the same age, and those from files without \`creationTimestamp\`, are in the order of
namespace and name.

## Example

Two policies insist on a limit for the storefront:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: TimeoutPolicy
metadata: {name: hurry, namespace: platform}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: storefront}]
  overrides: {strategy: merge, client: {request: 5s}}
\`\`\`

\`\`\`sh
entail explain httproute/shop/shop --kind TimeoutPolicy --manifests examples/bakery
\`\`\`

## How to mend it

Join the two policies, or remove the field from one of them: an order by age is easy to overlook.

## When to ignore it

Never for long: it changes when a policy is created again.`,E074:`# E074 Newer: A newer policy of the same target wins

Severity: note.

Two policies of one kind are attached to the same object, both set the field as a default, and the newer one
wins, because it is applied after the older one. Policies of the same age, and those from files without
\`creationTimestamp\`, are in the order of namespace and name.

## Example

Two policies for the route of the cakes:

\`\`\`yaml
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: a-first, namespace: baker}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cakes}]
  defaults: {strategy: merge, backoff: 9s}
\`\`\`

\`\`\`sh
entail explain httproute/baker/cakes --kind RetryPolicy --manifests examples/bakery
\`\`\`

## How to mend it

Join the two policies, or remove the field from one of them: an order by age is easy to overlook.

## When to ignore it

Never for long: it changes when a policy is created again.`,E075:`# E075 Unset: A more specific policy unsets the field

Severity: note.

A more specific policy removes the field: it lists it among the fields that it unsets. The result has no value
for it.

## Example

A policy of a kind with the setting \`unset\`, such as \`unset: [backoff]\`.

## How to mend it

Remove the field from the list, if it is to be inherited.

## When to ignore it

If the field is not to be inherited.`,E076:`# E076 DeletedByNull: A null deletes the field

Severity: note.

A more specific policy sets the field to null. In a merge, a null deletes what less specific policies set.

## Example

A route that inherits all fields but one:

\`\`\`text
defaults: {strategy: merge, backoff: null}
\`\`\`

## How to mend it

Remove the field from the policy, if it is to be inherited. Templates often write a null where a value is
empty.

## When to ignore it

If the field is not to be inherited.`,E077:`# E077 ConditionFalse: The condition of a block is not true on the path

Severity: note.

The block of the policy has a condition, and it is not true on this path, so the block takes no part here.

## Example

A kind whose profile has \`when\`, and a policy with a condition on the labels of the Route.

## How to mend it

Compare the condition with the objects of the path: \`entail explain\` lists them.

## When to ignore it

If the block is meant for other paths.`,E078:`# E078 BeyondClosestParent: Only the closest parent is inherited

Severity: note.

The kind inherits from the closest parent alone: of the policies above the most specific one, only the next
one counts. This one is farther away.

## Example

A kind whose profile has \`span: ClosestParent\`, with policies on the Gateway, the Route and the rule.

## How to mend it

Repeat the field in the closest parent, or attach the policy there.

## When to ignore it

Nearly always: the controller works like this.`,E079:`# E079 OwnField: A field of the object itself wins

Severity: note.

A field of the object itself, such as \`timeouts\` of a route rule, sets the same thing as the policy, and the
controller prefers it.

## Example

A rule with \`timeouts: {request: 5s}\` and a BackendTrafficPolicy of Envoy Gateway with another timeout.

## How to mend it

Remove the field from the Route, or the value from the policy: one place is easier to find.

## When to ignore it

If the Route is to decide.`,E080:`# E080 ExclusiveFields: Another field excludes this one

Severity: note.

Some fields exclude each other: only one of them can be set. A policy that wins sets another one of them, so
this one is removed, although nobody sets it.

## Example

In a SecurityPolicy or BackendTrafficPolicy of Envoy Gateway, one policy sets one kind of a setting, and a
more specific one the other kind.

## How to mend it

Set the same field in both policies.

## When to ignore it

If the more specific policy is to replace the other kind.`,E081:`# E081 SectionTaken: A policy of a more specific target replaces this one as a whole

Severity: note.

A policy that targets a section, such as a listener or a rule, or another more specific target replaces this
one as a whole there: the kind does not merge the two.

## Example

A ClientTrafficPolicy of Envoy Gateway for a Gateway, and another one for one of its listeners.

## How to mend it

Repeat in the more specific policy what is to hold there, too.

## When to ignore it

If the more specific policy is to stand alone.`,E082:`# E082 SamePolicyOverride: The overrides of the same policy win over its defaults

Severity: note.

The policy has both blocks, and its overrides set the same field as its defaults. Its own override wins.

## Example

A policy of a kind that allows both blocks:

\`\`\`text
defaults: {attempts: 3}
overrides: {attempts: 1}
\`\`\`

## How to mend it

Remove the field from one of the blocks.

## When to ignore it

Never: one of the two has no effect.`,E090:`# E090 AssertionFailed: Paths are not as an assertion expects

Severity: error.

The effective policies of some paths are not as an assertion expects, and no exception names an object of these
paths. The finding names the first path and says why; \`entail check\` lists the others.

## Example

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: retries-are-bounded}
spec:
  policies: {retry: RetryPolicy}
  expect: {cel: "!has(retry.attempts) || retry.attempts <= 3"}
\`\`\`

A policy sets \`attempts: 5\` on a path of this cluster.

## How to mend it

\`entail explain PATH\` shows which policy sets the value. Change it, or attach one that overrides it. If the paths are meant
to be as they are, add the object to \`except\` of the assertion, with the reason.

## When to ignore it

Never: use \`except\` of the assertion, which has a reason and an end.`,E091:`# E091 AssertionUnknown: It is not known whether paths are as an assertion expects

Severity: error.

An assertion cannot be decided on some paths, or on all of them: policies are of a kind that is not known or not
permitted to be read, or their effect on the path is not known. That is not the same as "no policy", so the assertion
does not hold.

## Example

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: guarded}
spec:
  policies: {guard: GuardPolicy.example.com}
  expect: {match: {guard: {mode: strict}}}
\`\`\`

No profile describes \`GuardPolicy.example.com\`.

## How to mend it

The message says what is not known. Add a profile for the kind, permit the server to read it, or mend the source.

## When to ignore it

If the kind belongs to a controller that does not serve these paths: narrow \`paths\` of the assertion instead.`,E092:`# E092 AssertionInvalid: An assertion is invalid

Severity: error.

A field of an assertion is unknown, malformed, or names a variable or a policy kind that does not exist. Nothing is
checked.

## Example

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: misspelt}
spec:
  policies: {retry: RetryPolicy}
  expect: {cel: "has(retries.attempts)"}
\`\`\`

The variable is \`retry\`.

## How to mend it

Correct the field that the message names. [assertions.md](../assertions.md) describes all of them.

## When to ignore it

Never: an assertion that is not checked protects nothing.`,E093:`# E093 ExceptionExpired: An exception of an assertion has expired

Severity: warning.

The last day of an entry of \`except\` has passed. The entry does not count any more, so that paths of the object may fail.

## Example

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: members-only}
spec:
  policies: {auth: AuthPolicy.policies.bakery.example}
  expect: {match: {auth: {rules: {loyalty: {}}}}}
  except:
  - {object: httproute/baker/bread, reason: until cards are printed, expires: 2026-03-31}
\`\`\`

## How to mend it

Mend the cause and remove the entry, or give it another day.

## When to ignore it

If the object is as expected by now, and the entry is removed later.`,E094:`# E094 ExceptionUnused: No path needs an exception of an assertion

Severity: note.

An entry of \`except\` names an object none of whose paths would fail without it: the object is as expected, it does not
exist, or the name is wrong.

## Example

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: members-only}
spec:
  paths: {namespaces: {matchLabels: {kubernetes.io/metadata.name: shop}}}
  policies: {auth: AuthPolicy.policies.bakery.example}
  expect: {match: {auth: {rules: {loyalty: {}}}}}
  except:
  - {object: httproute/shop/shop, reason: no cards yet}
\`\`\`

## How to mend it

Remove the entry, so that the assertion protects the object again.

## When to ignore it

If one list of exceptions serves several clusters.`,E095:`# E095 AssertionWithoutPaths: An assertion is about no path

Severity: warning.

No path ends at the level of the assertion and is below the Gateways, hostnames, namespaces and kinds of Routes that it
selects. It protects nothing, and its result is \`UNKNOWN\`.

## Example

\`\`\`yaml
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: members-only}
spec:
  paths: {gateways: {matchLabels: {exposure: pubic}}}
  policies: {auth: AuthPolicy.policies.bakery.example}
  expect: {match: {auth: {rules: {loyalty: {}}}}}
\`\`\`

The label is \`public\`.

## How to mend it

Correct the selection: \`entail topology\` shows what there is.

## When to ignore it

If the objects are created later.`,E100:`# E100 ValueLost: A change takes a value away

Severity: error.

A field of an effective policy is set before a change of manifests and not after it, on paths that both have.
\`entail diff -o sarif\` reports it.

## Example

Before the change, the AuthPolicy \`members-only\` targets the HTTPRoute \`shop\`; after it, by a typo, \`shopp\`. The fields that
it set are gone.

## How to mend it

\`entail diff -o markdown\` shows the value and where it came from. Restore the policy or its target, or say in the review
that the value is meant to go.

## When to ignore it

If the value is not needed any more.`,E101:`# E101 PathRemoved: A change removes a path

Severity: error.

A path exists before a change of manifests and not after it, and its rule or backend has no other path. Requests no longer
get there. \`entail diff -o sarif\` reports it.

## Example

The Route names another \`sectionName\`, which no listener has.

## How to mend it

\`entail explain httproute/NAMESPACE/NAME\` says why no path goes through an object.

## When to ignore it

If the Route is meant to go.`,E102:`# E102 LostOnTheWay: A change leads requests another way, without policies or values

Severity: error.

A change of manifests leads requests to a rule or backend another way, such as through another listener, and there a policy
or value is missing that was in effect on all paths before. \`entail diff -o sarif\` reports it.

## Example

A Route moves from the listener \`https\`, which has an AuthPolicy, to \`http\`, which has none.

## How to mend it

Attach the policy to the new listener, to its Gateway, or to the Route itself.

## When to ignore it

If the policy is not needed there.`,E103:`# E103 NewPathWithoutPolicy: A new path lacks a policy that all others have

Severity: error.

A change of manifests adds a path, and a policy kind that is in effect on all other paths of the Gateway is not in effect
on it. \`entail diff -o sarif\` reports it.

## Example

A ListenerSet adds a listener to a Gateway whose AuthPolicies are all attached to its other listeners.

## How to mend it

Attach a policy of the kind to the new listener or Route, or to the Gateway.

## When to ignore it

If the path is meant to be without it. An [assertion](../assertions.md) with an exception says so for good.`};function ic({code:e}){let t=ac[e];if(!t)return i(X,{text:`There is no code ${e}`});let[n=e,...o]=t.split(`
`);return i(A,{children:[i(X,{text:n.replace(/^# /,"")}),i("p",{class:"actions",children:i("a",{href:B(["findings"],{code:e}),children:"Findings with this code"})}),i("div",{class:"document",children:Of(o)})]})}function Of(e){let t=[],n=[],o=[],r=()=>{n.length&&t.push(i("p",{children:mo(n.join(" "))})),o.length&&t.push(i("ul",{children:o.map(s=>i("li",{children:mo(s)}))})),n=[],o=[]};for(let s=0;s<e.length;s+=1){let a=e[s];if(a.startsWith("```")){r();let l=e.indexOf("```",s+1);t.push(i("pre",{tabIndex:0,children:e.slice(s+1,l<0?void 0:l).join(`
`)})),s=l<0?e.length:l}else a.startsWith("## ")?(r(),t.push(i("h2",{children:a.slice(3)}))):/^[-*] /.test(a)?(n.length&&r(),o.push(a.slice(2))):a.trim()?o.length?o[o.length-1]+=` ${a.trim()}`:n.push(a):r()}return r(),t}function mo(e){return e.split(/(`[^`]+`|\[[^\]]+\]\([^)]+\)|\*\*[^*]+\*\*)/).map(t=>{if(t.startsWith("`"))return i("code",{children:t.slice(1,-1)});if(t.startsWith("**"))return i("strong",{children:t.slice(2,-2)});let n=/^\[([^\]]+)\]\(([^)]+)\)$/.exec(t);if(!n)return t;let o=/^(E\d+)\.md/.exec(n[2]);return o?i("a",{href:B(["code",o[1]]),children:mo(n[1])}):mo(n[1])})}var Mf=[],ds=class{names=[];levels=[];attached=[];policies=[];truncated=!1;below=new It([],[],0);above=new It([],[],0);byName=new Map;searched=[];objects=[];finish(t,n){this.below=new It(t,n,this.names.length),this.above=new It(n,t,this.names.length);for(let o=0;o<this.names.length;o+=1){let r=this.names[o],s=this.byName.get(r);s?s.push(o):(this.byName.set(r,[o]),this.levels[o]!=="BackendPort"&&this.objects.push(o))}this.searched=this.objects.map(o=>this.names[o].toLowerCase()),this.searchedPolicies=this.policies.map(o=>`${o.kind}/${o.namespace}/${o.name}`.toLowerCase())}searchedPolicies=[];children=t=>this.below.of(t);parents=t=>this.above.of(t);nodes=t=>this.byName.get(t)??[];lower;canonical(t){return this.byName.has(t)?t:(this.lower??=new Map(this.names.map(n=>[n.toLowerCase(),n])),this.lower.get(t.toLowerCase())??t)}search(t,n){let o=t.toLowerCase().split(/[\s]+/).filter(Boolean);if(!o.length)return{objects:[],policies:[],more:!1};let r=c=>{let d=0;for(let u of o){let f=c.indexOf(u);if(f<0)return-1;let m=f===0?"/":c[f-1],p=c[f+u.length];/[/#.]/.test(m)?d+=4:m==="-"&&(d+=2),p===void 0?d+=3:/[/#]/.test(p)&&(d+=2)}return d+(c.includes("#")?0:1.5)-Math.min(c.length,300)/300},s=c=>{let d=[],u=-1,f=!1;for(let m=0;m<c.length;m+=1){let p=r(c[m]);if(!(p<=-1)){if(d.length>=n*4){if(f=!0,p<=u)continue;d.sort((h,y)=>y[1]-h[1]).length=n,u=d[n-1][1]}d.push([m,p])}}return d.sort((m,p)=>p[1]-m[1]||m[0]-p[0]),{ids:d.slice(0,n).map(([m])=>m),more:f||d.length>n}},a=s(this.searched),l=s(this.searchedPolicies);return{objects:a.ids.map(c=>this.objects[c]),policies:l.ids.map(c=>this.policies[c]),more:a.more||l.more}}facts=new Map;fact(t,n){return this.facts.has(t)||this.facts.set(t,n(this)),this.facts.get(t)}};function fs(e){return e.fact("overview",()=>{let t=new Set,n=new Set,o=new Map,r=new Set;return e.names.forEach((s,a)=>{let l=e.levels[a],c=s.indexOf("/"),d=s.indexOf("/",c+1);if(l!=="Namespace"&&(n.add(s.slice(0,c)),d>0&&t.add(s.slice(c+1,d))),e.nodes(s).length>1){if(r.has(`${l} ${s}`))return;r.add(`${l} ${s}`)}o.set(l,(o.get(l)??0)+1)}),{namespaces:[...t].sort(),kinds:[...n].sort(),levels:o}})}var It=class{starts;ends;constructor(t,n,o){this.starts=new Uint32Array(o+1),this.ends=new Uint32Array(t.length);for(let s of t)this.starts[s+1]+=1;for(let s=0;s<o;s+=1)this.starts[s+1]+=this.starts[s];let r=this.starts.slice();for(let s=0;s<t.length;s+=1)this.ends[r[t[s]]++]=n[s]}of(t){return this.ends.subarray(this.starts[t]??0,this.starts[t+1]??0)}},ce=new Ee({catalog:void 0,loading:!1,read:0,error:void 0});function Ff(e){let t=e.conditions.find(n=>n.type==="Accepted");return{kind:e.kind,namespace:e.policy?.namespace??"",name:e.policy?.name??"",accepted:e.inForce!=="",reason:t?.reason??e.conditions[0]?.reason??"",inForce:e.inForce,paths:Number(e.paths),overriddenPaths:Number(e.overriddenPaths)}}var Wf=1e4,Uf=2e3;async function Bf(){let e=new ds,t=[],n=[],o=new Map,r=a=>{let l=o.get(a);return l!==void 0?l:(o.set(a,a),a)},s=()=>ce.update({read:e.names.length+e.policies.length});for(let a="";;){let l=await ie.getTopology({pageSize:Wf,pageToken:a});for(let c of l.nodes)e.names[c.id]=c.name,e.levels[c.id]=r(c.level),e.attached[c.id]=c.policies.length?c.policies.map(({kind:d,policy:u,accepted:f})=>({kind:r(d),namespace:r(u?.namespace??""),name:u?.name??"",accepted:f})):Mf;for(let c of l.edges)t.push(c.from),n.push(c.to);if(e.truncated||=l.truncated,s(),a=l.nextPageToken,!a)break}for(let a="";;){let l=await ie.listPolicies({pageSize:Uf,pageToken:a});for(let c of l.policies){let d=Ff(c);d.kind=r(d.kind),d.namespace=r(d.namespace),d.reason=r(d.reason),d.inForce=r(d.inForce),e.policies.push(d)}if(e.truncated||=l.truncated,s(),a=l.nextPageToken,!a)break}return e.finish(t,n),e}var us=!1,ho=0,cc=0,en="",lc=0;async function Df(){if(!us){us=!0,ho=Date.now(),en=G.get().snapshot,ce.update({loading:!0,read:0});try{let e=await Qr(Bf);ce.set({catalog:e,loading:!1,read:e.names.length,error:void 0})}catch(e){ce.update({loading:!1,error:O.from(e)}),en=""}cc=Date.now()-ho,us=!1,ce.get().catalog&&G.get().snapshot!==en&&ps()}}function ps(){let{token:e,connection:t}=G.get();if(!G.get().snapshot||G.get().snapshot===en||e!=="unneeded"||t==="lost")return;window.clearTimeout(lc);let n=ho===0?30:Math.max(200,ho+Math.max(1e3,8*cc)-Date.now());lc=window.setTimeout(Df,n)}function uc(){G.subscribe(ps),ke.subscribe(()=>{en="",ps()})}var Tt=e=>e.group?`${e.kind}.${e.group}`:e.kind;function bo(e){let t=new Map;for(let{paths:n,kinds:o}of e.paths)for(let r of o){let s=Tt(r.policy),a=He(Dl,r).join(),l=t.get(s);l||t.set(s,l=new Map);let c=l.get(a);c?c.paths.push(...n):l.set(a,{key:`${s} ${n[0]}`,kind:s,paths:[...n],explanation:r})}return[...t].map(([n,o])=>[n,[...o.values()].sort((r,s)=>go(s.explanation)-go(r.explanation))]).sort((n,o)=>go(o[1][0].explanation)-go(n[1][0].explanation)||(n[0]<o[0]?-1:1))}function go({policy:e,lostUnits:t,warnings:n}){return e?.unknown||e?.notComputed?3:e?.rejected.length?2:t.length||n.length?1:0}var Yf={0:"",1:"rules",2:"defaults",3:"overrides",4:"own field"},Zf=e=>Yf[e]??"";function et({kind:e,origin:t,strategy:n}){if(!t)return i("span",{class:"quiet",children:"no policy"});let o=[Zf(t.block),n].filter(Boolean).join(", ");return i("span",{class:"origin",children:[t.object?i(te,{object:t.object}):t.policies.map((r,s)=>i(A,{children:[s>0&&", ",i(me,{kind:e,policy:r})]}))," ",o&&i("span",{class:"quiet",children:o})]})}var ms=(e,t)=>e?.name===t?.name&&e?.namespace===t?.namespace;function Kf(e,{units:t,policy:n}){if(n?.rejected.some(s=>ms(s.policy,e)))return{text:"rejected",tone:"bad"};if(n?.unknown||n?.notComputed)return{text:"effect not known",tone:"unknown"};if(n?.listed.length)return{text:"listed",tone:""};let o=t.filter(s=>s.origin?.policies.some(a=>ms(a,e))).length,r=t.filter(s=>s.overridden.some(a=>ms(a.policy,e))).length;return o&&r?{text:`sets ${o}, overridden on ${r}`,tone:""}:o?{text:o===t.length?"sets everything":`sets ${o} of ${t.length}`,tone:""}:r?{text:"overridden",tone:"off"}:{text:"sets nothing",tone:"off"}}function jf(e,t){let n=Se(e),o=t.map(d=>n.findIndex(u=>u.object===d.node)),r=o.filter(d=>d>=0),s=t.map(d=>({object:d.node,level:d.level,attached:d}));if(!n.length||r.some((d,u)=>u>0&&d<=r[u-1]))return s;let a=[],l=0,c=d=>{for(;l<d;l+=1)a.push({object:n[l].object,level:n[l].level,attached:void 0})};return t.forEach((d,u)=>{let f=o[u];if(f>=0)c(f),l+=1;else{let m=o.slice(u+1).find(y=>y>=0)??n.length,p=q(d.node).name,h=n.findIndex((y,b)=>b>=l&&q(y.object).namespace===p);d.level==="Namespace"&&h>=0&&c(Math.min(h,m))}a.push({object:d.node,level:d.level,attached:d})}),c(n.length),a}function $f({kind:e,path:t,explanation:n}){return i("ol",{class:"stack","aria-label":"Attached policies, from least to most specific",children:jf(t,n.nodes).map(o=>i("li",{class:o.attached?"attached":"empty",children:[i("div",{class:"stack-node",children:[i("span",{class:"level",children:Ge(o.level)})," ",i(te,{object:o.object,withKind:!["Gateway","Namespace","Listener","RouteRule"].includes(o.level)})]}),o.attached?.precedesChildRoutes&&i("div",{class:"quiet small",children:"child Routes cannot override its policies"}),o.attached&&i("ul",{children:o.attached.policies.map(r=>{let s=Kf(r.policy,n);return i("li",{class:`stack-policy ${s.tone}`,children:[i(me,{kind:e,policy:r.policy}),i("div",{class:"small quiet",children:[i("span",{class:"effect",children:s.text})," · ",i(E,{children:r.blocks.join("; ")}),r.created&&i("span",{class:"date",children:[" · since ",Fi(r.created).toISOString().slice(0,10)]})]})]},qe(r.policy))})})]},o.object))})}function Xf({json:e}){let t=Ht(e);return i("del",{class:t.length>32?"long":"",children:i("code",{children:i(E,{children:t})})})}function Jf({kind:e,unit:t,changed:n}){return i("tr",{class:n?"changed":"",children:[i("th",{scope:"row",children:[t.unit==="*"?i("span",{class:"quiet",children:"whole policy"}):i("code",{children:i(E,{children:t.unit})})," ",n&&i("span",{class:"badge live",children:"changed"})]}),i("td",{children:t.valueJson===void 0?i("span",{class:"quiet",children:"no value"}):i(Qt,{json:t.valueJson})}),i("td",{children:[i(et,{kind:e,origin:t.origin,strategy:t.strategy}),t.overridden.length>0&&i("ul",{class:"overridden",children:[...t.overridden].reverse().map(o=>i("li",{children:[i("span",{class:"quiet",children:"overrides "}),i(me,{kind:e,policy:o.policy}),": ",i(Xf,{json:o.valueJson}),o.unit!==t.unit&&i("span",{class:"quiet",children:[" at ",i(E,{children:o.unit})]})," ",i(nc,{reason:o.reason})]}))})]})]})}function ut({policy:e}){let t=Tt(e),n=["SelectorNotEvaluated","BackendFilterNotEvaluated","ReferenceNotChecked","PolicyUnreadable"].includes(e.unknown?.reason??"");return i(A,{children:[e.unknown&&i(Z,{tone:"unknown",title:`Not known: ${e.unknown.reason}`,children:[i("p",{children:[i(E,{children:e.unknown.message}),"."," ",n?"What is below holds apart from that.":"This does not mean that there is no policy."]}),e.unknown.policies.length>0&&i("p",{children:e.unknown.policies.map((o,r)=>i(A,{children:[r>0&&", ",i(me,{kind:t,policy:o})]}))})]}),e.notComputed&&i(Z,{tone:"unknown",title:"Not computed",children:i("p",{children:i(E,{children:e.notComputed})})}),e.rejected.length>0&&i(Z,{tone:"error",title:V(e.rejected.length,"policy is rejected","policies are rejected"),children:i("ul",{children:e.rejected.map(o=>i("li",{children:[i(me,{kind:t,policy:o.policy})," ",i("span",{class:"badge bad",children:o.reason})," ",i(E,{children:o.message})]}))})}),e.inheritedOnly&&i("p",{class:"quiet small",children:"Takes effect further down. This is what paths below inherit so far."})]})}function gs({policy:e}){return e.listed.length?i("ol",{class:"listed",children:e.listed.map(t=>i("li",{children:[i(me,{kind:Tt(e),policy:t.policy})," ",i("span",{class:"quiet",children:"on"})," ",i(te,{object:t.node}),i(Qt,{json:t.specJson})]}))}):null}function bs({kind:e,explanation:t,paths:n,changed:o}){let{policy:r,units:s,lostUnits:a,warnings:l}=t;return i("div",{class:"units",children:[i(gs,{policy:r}),s.length>0&&i("table",{children:[i("thead",{children:i("tr",{children:[i("th",{scope:"col",children:"Field"}),i("th",{scope:"col",children:"Value"}),i("th",{scope:"col",children:"Set by"})]})}),i("tbody",{children:s.map(c=>i(Jf,{kind:e,unit:c,changed:n.some(d=>o.has(hs(d,e,c.unit)))},c.unit))})]}),!s.length&&!r.listed.length&&!r.unknown&&!r.notComputed&&i("p",{class:"quiet",children:"No policy contributes a value here."}),a.length>0&&i(Z,{tone:"unknown",title:"Lost values",children:i("p",{children:["A less specific policy sets ",i(E,{children:a.join(", ")}),", and the result does not contain it."]})}),l.map(c=>i("p",{class:"warning",children:i(E,{children:c})}))]})}function Hf({answer:e,without:t,changed:n}){let{explanation:o,kind:r,paths:s}=e;return i("article",{class:"answer",children:[i("div",{class:"answer-paths",children:[i("span",{class:"quiet",children:"on"}),i(Ue,{paths:s,without:t})]}),i(ut,{policy:o.policy}),i("div",{class:"answer-body",children:[i($f,{kind:r,path:s[0],explanation:o}),i(bs,{kind:r,explanation:o,paths:s,changed:n})]})]})}function dc({kind:e,answers:t,without:n,changed:o}){return i("section",{class:"kind-section",id:`kind-${e}`,"aria-label":e,children:[i("h2",{children:[i(Q,{kind:e})," ",t.length>1&&i("span",{class:"count",children:[t.length," different answers"]})]}),t.map(r=>i(Hf,{answer:r,without:n,changed:o},r.key))]})}var hs=(e,t,n)=>`${e}
${t}
${n}`;function zf(e,t){let n=l=>{let c=new Map;for(let{paths:d,kinds:u}of l.paths)for(let{policy:f,units:m}of u){let p=Tt(f),h=[f.unknown?`not known (${f.unknown.reason})`:"",...f.rejected.map(y=>`${y.policy?.name} rejected (${y.reason})`)].filter(Boolean).join("; ");for(let y of d){h&&c.set(hs(y,p,""),h);for(let b of m){let w=b.origin?.object||b.origin?.policies.map(qe).join(", ")||"no policy";c.set(hs(y,p,b.unit),`${b.valueJson===void 0?"no value":Ht(b.valueJson)} (${w})`)}}}return c},o=n(e),r=n(t),s=new Set,a=new Map;for(let l of new Set([...o.keys(),...r.keys()])){let[c,d]=[o.get(l),r.get(l)];if(c===d)continue;s.add(l);let[,u="",f=""]=l.split(`
`),m={kind:u,unit:f,before:c??"nothing",after:d??"nothing",paths:1},p=JSON.stringify(m),h=a.get(p);h?h.paths+=1:a.set(p,m)}return{list:[...a.values()],keys:s}}function pc(e,t,n){let[o,r]=W();z(()=>{if(!e||!t)return;let{list:a,keys:l}=zf(e,t);a.length&&r({question:n,time:Date.now(),list:a,keys:l})},[e,t]);let s=o?.question===n?o:void 0;return{changed:s?.keys??new Set,current:s,dismiss:()=>r(void 0)}}function fc({current:e,dismiss:t}){return i("div",{"aria-live":"polite",class:"differences-slot",children:e&&i("div",{class:"note live differences",children:[i("p",{class:"note-title",children:["Changed at ",Qe(e.time)," ",i("button",{class:"link",onClick:t,children:"dismiss"})]}),i("ul",{children:[e.list.slice(0,8).map(n=>i("li",{children:[i(Q,{kind:n.kind})," ",i("code",{children:i(E,{children:n.unit==="*"?"whole policy":n.unit})}),": ",i(E,{children:n.before})," ",i("span",{"aria-label":"becomes",children:"→"})," ",i("strong",{children:i(E,{children:n.after})}),n.paths>1&&i("span",{class:"quiet",children:[" on ",n.paths," paths"]})]})),e.list.length>8&&i("li",{class:"quiet",children:["and ",e.list.length-8," more"]})]})]})})}var mc=100;async function yo(e,t,n){let o=await ie.explain({name:e,pageSize:mc},{signal:n});for(let r=t-1;r>0&&o.nextPageToken;r-=1){let s=await ie.explain({name:e,pageSize:mc,pageToken:o.nextPageToken},{signal:n});o.paths.push(...s.paths),o.nextPageToken=s.nextPageToken}return o}function ys({name:e,isPath:t}){let[n,o]=W({name:e,count:1}),r=n.name===e?n.count:1,{query:s}=M(re),{catalog:a}=M(ce),l=xe(`explain ${e} ${r}`,b=>yo(e,r,b)),{changed:c,current:d,dismiss:u}=pc(l.previous,l.data,e),f=J(()=>l.data?bo(l.data):[],[l.data]);ze(J(()=>qf(l.data,t?e:""),[l.data]));let m=J(()=>[...new Set(l.data?.paths.flatMap(({paths:b})=>b.map(po)))].sort(),[l.data]),p=s.get("at")??"",h=s.get("kind")??"",y=f.filter(([b])=>!h||b===h).map(([b,w])=>[b,w.map(v=>({...v,paths:v.paths.filter(N=>!p||N===p||N.startsWith(`${p}/`))})).filter(v=>v.paths.length)]).filter(([,b])=>b.length);return i(A,{children:[t?i(X,{text:`Path ${e}`,children:[i("span",{class:"eyebrow",children:"Path"}),i(Ie,{path:e,link:!1})]}):i(Qf,{name:a?a.canonical(e):e}),i(em,{name:e,isPath:t}),i(fc,{current:d,dismiss:u}),!t&&a&&i(tm,{catalog:a,name:e}),i(_e,{live:l,children:b=>i(A,{children:[i(we,{kinds:b.kinds,truncated:b.truncated,unread:b.unreadParameters}),(f.length>1||m.length>1)&&i("div",{class:"filters",role:"group","aria-label":"Filter",children:[i("label",{children:["Kind",i("select",{value:h,onChange:w=>le({kind:w.currentTarget.value}),children:[i("option",{value:"",children:["all ",f.length]}),f.map(([w])=>i("option",{value:w,children:fe(w)}))]})]}),m.length>1&&i("label",{children:["At",i("select",{value:p,onChange:w=>le({at:w.currentTarget.value}),children:[i("option",{value:"",children:["all ",m.length," listeners"]}),m.map(w=>i("option",{value:w,children:fe(Se(w).map(v=>v.label).join(" › "))}))]})]})]}),y.map(([w,v])=>i(dc,{kind:w,answers:v,without:t?"":e,changed:c},w)),!h&&i(nm,{reply:b}),b.nextPageToken&&i("p",{children:[i("button",{onClick:()=>o({name:e,count:r+5}),disabled:l.loading,children:"Show more answers"})," ",i("span",{class:"quiet",children:"There are more paths with other answers."})]})]})})]})}function qf(e,t){if(t)return[t];let n=new Set;for(let{paths:o}of e?.paths??[])for(let r of o){let a=Se(r).filter(l=>l.level==="Route").pop();n.add(a?.path??r)}return[...n]}function Qf({name:e}){let{kind:t,namespace:n,name:o,section:r}=q(e);return i(X,{text:e,children:[i("span",{class:"eyebrow",children:[i(E,{children:t}),r!==void 0&&i("span",{children:[" ",At(t)?"rule":/gateway|listenerset/i.test(t)?"listener":"section"]})]}),i(E,{children:n?`${n}/${o}`:o}),r!==void 0&&i(A,{children:[i("span",{class:"quiet",children:"#"}),i(E,{children:r})]})]})}function em({name:e,isPath:t}){let{kind:n}=q(e);return i("p",{class:"actions",children:[!t&&i("a",{href:B(["topology"],{focus:e}),children:"Show in the topology"}),i("a",{href:B(["compare"],{a:e}),children:"Compare with another"}),!t&&/^gateway$/i.test(n)&&i("a",{href:B(["path","gateways",q(e).namespace,q(e).name]),children:"What everything below inherits"}),t&&Se(e).slice(-1).map(o=>i("span",{children:[i("span",{class:"quiet",children:"All paths of "}),i(te,{object:o.object})]}))]})}function tm({catalog:e,name:t}){let n=q(t),o=e.nodes(e.canonical(t)),r=new Map,s=new Map;for(let l of o){for(let c of e.parents(l))e.levels[c]!=="Namespace"&&r.set(e.names[c],e.levels[c]);for(let c of e.children(l))s.set(e.names[c],e.levels[c])}if(!o.length)return null;let a=os({...n,section:void 0});return i("dl",{class:"surroundings",children:[r.size>0&&i(hc,{title:"Above",nodes:r,own:a}),s.size>0&&i(hc,{title:"Below",nodes:s,own:a,compare:At(n.kind)&&n.section===void 0})]})}function hc({title:e,nodes:t,own:n,compare:o=!1}){let[r,s]=W(12),a=[...t],l=a.filter(([,c])=>c==="RouteRule").map(([c])=>c);return i(A,{children:[i("dt",{children:e}),i("dd",{children:i("ul",{class:"inline",children:[a.slice(0,r).map(([c,d])=>{let{section:u}=q(c),f=u!==void 0&&c.toLowerCase().startsWith(`${n.toLowerCase()}#`);return i("li",{children:[f&&i("span",{class:"quiet",children:[Ge(d).toLowerCase()," "]}),i(te,{object:c})]},c)}),a.length>r&&i("li",{children:i("button",{class:"link",onClick:()=>s(r+100),children:V(a.length-r,"more","more")})}),o&&l.length>1&&i("li",{children:i("a",{href:B(["compare"],{a:l[0],b:l[1]}),children:"Compare two rules"})})]})})]})}function nm({reply:e}){let{status:t,incomplete:n}=M(G);if(!t||e.nextPageToken||e.truncated)return null;let o=new Set(e.paths.flatMap(({kinds:u})=>u.map(({policy:f})=>`${f.kind}.${f.group}`))),r=new Set([...n.map(u=>u.kind),...e.kinds.map(u=>u.kind)]),s=t.kinds.filter(u=>u.policies>0n&&!o.has(u.kind)).map(u=>u.kind),a=u=>r.has(u)||r.has(lt),l=s.filter(u=>!a(u)),c=[...r].filter(u=>u!==lt),d=[...new Set([...s.filter(a),...c].filter(u=>!o.has(u)))];return i(A,{children:[d.length>0&&i(Z,{tone:"unknown",title:"Not known whether there is a policy",children:i("ul",{class:"inline",children:d.map(u=>i("li",{children:i(Q,{kind:u})}))})}),l.length>0&&i("p",{class:"quiet",children:["No policy of"," ",l.map((u,f)=>i(A,{children:[f>0&&", ",i(Q,{kind:u})]}))," ","applies here."]}),!o.size&&!d.length&&!l.length&&i("p",{class:"quiet",children:"No policy applies here."})]})}var om=e=>/^(gateways|gatewayclasses|namespaces|mesh)\//.test(e);function bc(){let{query:e}=M(re),[t,n]=[e.get("a")??"",e.get("b")??""],[o,r]=W({a:t,b:n});z(()=>r({a:t,b:n}),[t,n]);let{catalog:s}=M(ce),a=J(()=>{if(!s)return[];let l=(o.b||o.a).split("#")[0],c=l?s.search(l,40).objects.map(u=>s.names[u]):[],d=s.search("route/",40).objects.map(u=>s.names[u]);return[...new Set([...c,...d])]},[s,o.a,o.b]);return i(A,{children:[i(X,{text:"Compare"}),i("form",{class:"request",onSubmit:l=>{l.preventDefault(),Nt(B(["compare"],o))},children:[["a","b"].map(l=>i("label",{class:"grow",children:[l==="a"?"Left":"Right",i("input",{name:l,list:"compare-names",placeholder:"httproute/namespace/name#rule, or a path",spellcheck:!1,autocomplete:"off",value:o[l],onInput:c=>r({...o,[l]:c.currentTarget.value})})]})),i("datalist",{id:"compare-names",children:a.map(l=>i("option",{value:fe(l)}))}),i("p",{class:"buttons",children:i("button",{class:"primary",type:"submit",disabled:!o.a.trim()||!o.b.trim(),children:"Compare"})})]}),t&&n?i(rm,{a:t.trim(),b:n.trim()}):i("p",{class:"quiet",children:"Name two rules, routes, other objects or paths."})]})}function rm({a:e,b:t}){let n=xe(`explain ${e}`,a=>yo(e,1,a)),o=xe(`explain ${t}`,a=>yo(t,1,a)),{query:r}=M(re),s=J(()=>[...new Set([n.data,o.data].flatMap(a=>a?.paths.flatMap(({paths:l})=>l.slice(0,20))??[]))],[n.data,o.data]);return ze(s),n.error&&!n.data?i(We,{error:n.error}):o.error&&!o.data?i(We,{error:o.error}):i(_e,{live:{...n,data:n.data&&o.data?{left:n.data,right:o.data}:void 0},children:a=>i(sm,{a:e,b:t,left:a.left,right:a.right,at:[r.get("ata")??"",r.get("atb")??""]})})}function sm({a:e,b:t,left:n,right:o,at:r}){let[s,a]=W(!1),l=[n,o].map(p=>[...new Set(p.paths.flatMap(({paths:h})=>h.map(po)))].sort()),c=l.map((p,h)=>p.includes(r[h])?r[h]:p.find(y=>l[1-h].includes(y))??p[0]??""),d=[n,o].map((p,h)=>new Map(bo(p).map(([y,b])=>[y,b.map(w=>({...w,paths:w.paths.filter(v=>v===c[h]||v.startsWith(`${c[h]}/`))})).filter(w=>w.paths.length)]))),u=[...new Set([...d[0].keys(),...d[1].keys()])].map(p=>({kind:p,left:d[0].get(p)??[],right:d[1].get(p)??[]})).filter(p=>p.left.length||p.right.length),f=u.filter(p=>gc(p.left)===gc(p.right)),m=s?u:u.filter(p=>!f.includes(p));return i(A,{children:[i(we,{kinds:[...n.kinds,...o.kinds.filter(p=>!n.kinds.some(h=>h.kind===p.kind))],truncated:!!(n.nextPageToken||o.nextPageToken)}),i("div",{class:"filters",role:"group","aria-label":"Listeners",children:[[0,1].map(p=>i("label",{children:[p===0?"Left at":"Right at",i("select",{value:c[p],onChange:h=>le({[p===0?"ata":"atb"]:h.currentTarget.value}),children:l[p].map(h=>i("option",{value:h,children:fe(Se(h).map(y=>y.label).join(" › "))}))})]})),i("label",{class:"check",children:[i("input",{type:"checkbox",checked:s,onChange:p=>a(p.currentTarget.checked)})," Show equal kinds"]})]}),i("p",{role:"status",children:[u.length-f.length?`${u.length-f.length} of ${u.length} kinds differ.`:u.length?"All effective policies are equal.":"No policy applies on either side.",f.length>0&&u.length>f.length&&i("span",{class:"quiet",children:[" Equal: ",f.map((p,h)=>i(A,{children:[h>0&&", ",i(Q,{kind:p.kind})]})),"."]})]}),m.map(p=>i("section",{class:"kind-section","aria-label":p.kind,children:[i("h2",{children:[i(Q,{kind:p.kind})," ",f.includes(p)&&i("span",{class:"badge good",children:"equal"})]}),p.left.length<=1&&p.right.length<=1?i(am,{kind:p.kind,a:e,b:t,left:p.left[0],right:p.right[0]}):i("div",{class:"two",children:[p.left,p.right].map((h,y)=>i("div",{children:[i("h3",{children:i(ws,{name:y===0?e:t})}),h.map(b=>i("article",{class:"answer",children:[i(Ue,{paths:b.paths,without:y===0?e:t}),i(ut,{policy:b.explanation.policy}),i(bs,{kind:p.kind,explanation:b.explanation,paths:b.paths,changed:new Set})]})),!h.length&&i("p",{class:"quiet",children:"No entry for this kind."})]}))})]}))]})}var ws=({name:e})=>i("a",{class:"name",href:om(e)?$e(e):Ae(e),children:i(E,{children:e})}),gc=e=>e.map(t=>t.explanation.policy.etag).sort().join();function am({kind:e,a:t,b:n,left:o,right:r}){let s=[...new Set([o,r].flatMap(l=>l?.explanation.units.map(c=>c.unit)??[]))].sort(),a=(l,c)=>l?.explanation.units.find(d=>d.unit===c);return i("div",{class:"scroll",tabIndex:0,role:"region","aria-label":`Values of ${e}`,children:i("table",{class:"diff",children:[i("thead",{children:i("tr",{children:[i("th",{scope:"col",children:"Field"}),i("th",{scope:"col",children:i(ws,{name:t})}),i("th",{scope:"col",children:i(ws,{name:n})})]})}),i("tbody",{children:[[o,r].some(l=>l&&im(l))&&i("tr",{children:[i("th",{scope:"row",children:"Problems"}),i("td",{children:o?i(ut,{policy:o.explanation.policy}):i("span",{class:"quiet",children:"no entry"})}),i("td",{children:r?i(ut,{policy:r.explanation.policy}):i("span",{class:"quiet",children:"no entry"})})]}),s.map(l=>{let[c,d]=[a(o,l),a(r,l)],u=c?.valueJson===d?.valueJson;return i("tr",{class:u?"":"differs",children:[i("th",{scope:"row",children:[i("code",{children:i(E,{children:l==="*"?"whole policy":l})})," ",!u&&i("span",{class:"badge part",children:"differs"})]}),[c,d].map((f,m)=>i("td",{children:f?.valueJson===void 0?i("span",{class:"quiet",children:(m===0?o:r)?.explanation.policy?.unknown?"not known":"no value"}):i(A,{children:[i(Qt,{json:f.valueJson}),i("div",{class:"small",children:i(et,{kind:e,origin:f.origin,strategy:f.strategy})})]})}))]})})]})]})})}var im=({explanation:{policy:e}})=>!!(e?.unknown||e?.notComputed||e?.rejected.length);var vs=[[1,"error","bad"],[2,"warning","part"],[3,"note","off"]],lm=5e3;async function cm(e){let t=await ie.listFindings({maxPlaces:20},{signal:e});for(;t.nextPageToken&&t.findings.length<lm;){let n=await ie.listFindings({maxPlaces:20,pageToken:t.nextPageToken},{signal:e});t.findings.push(...n.findings),t.nextPageToken=n.nextPageToken}return t}function yc(){let{query:e}=M(re),{status:t}=M(G),n=xe("findings",cm),[o,r,s]=["q","severity","code"].map(d=>e.get(d)??""),a=n.data?.findings??[],l=J(()=>{let d=o.toLowerCase().split(/\s+/).filter(Boolean);return a.filter(u=>{let f=vs.find(([p])=>p===u.severity)?.[1],m=`${u.code} ${u.reason} ${u.object} ${u.message} ${u.location}`.toLowerCase();return(!r||f===r)&&(!s||u.code===s)&&d.every(p=>m.includes(p))})},[n.data,o,r,s]),c=J(()=>{let d=new Map;for(let u of a)d.set(u.code,[u.reason,(d.get(u.code)?.[1]??0)+1]);return[...d].sort()},[n.data]);return i(A,{children:[i(X,{text:"Findings"}),i(_e,{live:n,children:d=>i(A,{children:[i(we,{kinds:d.kinds,truncated:d.truncated||!!d.nextPageToken}),t&&t.problems.length>0&&i("div",{class:"note error",children:[i("p",{class:"note-title",children:[V(t.problems.length,"problem")," in the inputs"]}),i("ul",{children:t.problems.slice(0,50).map(u=>i("li",{children:[u.code&&i("a",{href:Be(u.code),children:u.code})," ",i(E,{children:u.location}),": ",i(E,{children:u.message})]}))})]}),i("div",{class:"filters",role:"group","aria-label":"Filter",children:[i("label",{children:["Text",i("input",{type:"search",value:o,onInput:u=>le({q:u.currentTarget.value})})]}),i("label",{children:["Severity",i("select",{value:r,onChange:u=>le({severity:u.currentTarget.value}),children:[i("option",{value:"",children:"all"}),vs.map(([u,f])=>i("option",{value:f,children:[f," (",a.filter(m=>m.severity===u).length,")"]}))]})]}),i("label",{children:["Code",i("select",{value:s,onChange:u=>le({code:u.currentTarget.value}),children:[i("option",{value:"",children:"all"}),c.map(([u,[f,m]])=>i("option",{value:u,children:[u," ",f," (",m,")"]}))]})]}),i("span",{class:"quiet",role:"status",children:V(l.length,"finding")})]}),!a.length&&i("p",{children:"There are no findings."}),i(fo,{items:l,children:u=>i("ul",{class:"findings",children:u.map(f=>i(um,{finding:f},`${f.code} ${f.object} ${f.location} ${f.message}`))})})]})})]})}function um({finding:e}){let[,t,n]=vs.find(([o])=>o===e.severity)??[0,"",""];return i("li",{children:[i("p",{class:"finding-head",children:[i("span",{class:`badge ${n}`,children:t}),i("a",{href:Be(e.code),children:i(E,{children:`${e.code} ${e.reason}`})}),i(dm,{object:e.object}),e.count>1n&&i("span",{class:"quiet",children:["in ",e.count.toLocaleString("en-US")," places"]})]}),i("p",{children:i(E,{children:e.message})}),e.places.length>0&&i("ul",{class:"small",children:[e.places.map(o=>i("li",{children:i(E,{children:o})})),Number(e.count)>e.places.length&&i("li",{class:"quiet",children:["and ",Number(e.count)-e.places.length," more"]})]}),e.location&&i("p",{class:"quiet small",children:i(E,{children:e.location})})]})}function dm({object:e}){let{status:t}=M(G),{kind:n,namespace:o,name:r}=q(e);return e?t?.kinds.some(s=>s.kind===n)?i("a",{class:"name",href:_t(n,{namespace:o,name:r}),children:[i("span",{class:"quiet",children:[i(E,{children:n.split(".")[0]})," "]}),i(E,{children:o?`${o}/${r}`:r})]}):/^(Gateway|GatewayClass|ListenerSet|Service|Namespace|[A-Za-z]*Route)$/.test(n)?i(te,{object:e}):i(E,{children:e}):null}var wc={All:["in force","good"],AllWithAdditions:["in force","good"],Part:["in part","part"],PartWithAdditions:["in part","part"],None:["no effect","off"],NoScope:["on no path","off"],Unknown:["not known","unknown"],"":["not accepted","bad"]};function xs({inForce:e}){let[t,n]=wc[e]??[e,""];return i("span",{class:`badge ${n}`,children:t})}var tn=e=>(wc[e]??[e])[0],Es=["not known","not accepted","no effect","on no path","in part","in force"];function vc(){let{catalog:e,error:t,read:n}=M(ce),{status:o,incomplete:r}=M(G),{query:s}=M(re),[a,l,c,d]=["q","kind","ns","force"].map(p=>s.get(p)??""),u=J(()=>{let p=a.toLowerCase().split(/\s+/).filter(Boolean);return(e?.policies??[]).filter(h=>(!l||h.kind===l)&&(!c||h.namespace===c)&&(!d||tn(h.inForce)===d)&&p.every(y=>`${h.kind}/${h.namespace}/${h.name}`.toLowerCase().includes(y))).sort((h,y)=>Es.indexOf(tn(h.inForce))-Es.indexOf(tn(y.inForce)))},[e,a,l,c,d]),f=J(()=>[...new Set(e?.policies.map(p=>p.kind))],[e]),m=J(()=>[...new Set(e?.policies.map(p=>p.namespace))].sort(),[e]);return i(A,{children:[i(X,{text:"Policies"}),t&&!e&&i(We,{error:t}),!e&&!t&&i(ct,{what:`Reading policies: ${V(n,"object")} so far`}),e&&i(A,{children:[i("div",{class:"filters",role:"group","aria-label":"Filter",children:[i("label",{children:["Name",i("input",{type:"search",value:a,onInput:p=>le({q:p.currentTarget.value})})]}),i(ks,{label:"Kind",value:l,values:f,name:"kind"}),i(ks,{label:"Namespace",value:c,values:m.filter(Boolean),name:"ns"}),i(ks,{label:"State",value:d,values:Es,name:"force"}),i("span",{class:"quiet",role:"status",children:V(u.length,"policy","policies")})]}),r.length>0&&i(Z,{tone:"unknown",title:"Policies may be missing here",children:i("p",{children:"Some kinds are not completely known: see the top of the page."})}),i(fo,{items:u,step:200,children:p=>i(pm,{policies:p})}),!e.policies.length&&o&&i("p",{class:"quiet",children:["There are no policies of the ",V(o.kinds.length,"kind")," with a profile."]})]})]})}function ks({label:e,value:t,values:n,name:o}){return i("label",{children:[e,i("select",{value:t,onChange:r=>le({[o]:r.currentTarget.value}),children:[i("option",{value:"",children:"all"}),n.map(r=>i("option",{value:r,children:fe(r)}))]})]})}function pm({policies:e}){return i("div",{class:"scroll",tabIndex:0,role:"region","aria-label":"Policies",children:i("table",{class:"list",children:[i("thead",{children:i("tr",{children:[i("th",{scope:"col",children:"Policy"}),i("th",{scope:"col",children:"Kind"}),i("th",{scope:"col",children:"State"}),i("th",{scope:"col",class:"number",children:"Paths"}),i("th",{scope:"col",class:"number",children:"Overridden on"})]})}),i("tbody",{children:e.map(t=>i("tr",{children:[i("td",{children:i(me,{kind:t.kind,policy:t})}),i("td",{children:i(Q,{kind:t.kind})}),i("td",{children:[i(xs,{inForce:t.inForce}),!t.accepted&&i("span",{class:"small",children:[" ",i(E,{children:t.reason})]})]}),i("td",{class:"number",children:t.paths.toLocaleString("en-US")}),i("td",{class:"number",children:t.overriddenPaths?t.overriddenPaths.toLocaleString("en-US"):i("span",{class:"quiet",children:"0"})})]},`${t.kind} ${t.namespace} ${t.name}`))})]})})}function kc({kind:e,namespace:t,name:n}){let o=[e,t,n].filter(Boolean).join("/"),r=[rs(e),t,n].filter(Boolean).join("/"),[s,a]=W(1),l=xe(`policy ${o} ${s}`,async c=>{let d={case:"policy",value:o},u=await ie.listAffected({subject:d,pageSize:100},{signal:c});for(let f=s-1;f>0&&u.nextPageToken;f-=1){let m=await ie.listAffected({subject:d,pageSize:1e3,pageToken:u.nextPageToken},{signal:c});u.paths.push(...m.paths),u.objects.push(...m.objects),u.nextPageToken=m.nextPageToken}return u});return ze(l.data?.paths.map(({path:c})=>c)??[]),i(A,{children:[i(X,{text:o,children:[i("span",{class:"eyebrow",children:i(Q,{kind:e})}),i(E,{children:t?`${t}/${n}`:n})]}),i("p",{class:"actions",children:[i("a",{href:B(["preview"],{delete:r}),children:"Preview what happens without it"}),i("a",{href:B(["preview"],{change:r}),children:"Preview a change"}),i("a",{href:B(["findings"],{q:`${ye(rs(e))[0]} ${t?`${t}/`:""}${n}`}),children:"Findings about it"})]}),i(_e,{live:l,children:c=>{let d=c.status;return i(A,{children:[i(we,{kinds:c.kinds,truncated:c.truncated}),d&&i("section",{"aria-label":"Status",children:[i("h2",{children:["Status ",i(xs,{inForce:d.inForce})]}),i("dl",{class:"facts",children:[d.conditions.map(u=>i(A,{children:[i("dt",{children:i(E,{children:u.type})}),i("dd",{children:[i("span",{class:`badge ${u.status==="True"?"good":u.status==="False"?"bad":"unknown"}`,children:u.status})," ",i(E,{children:u.reason}),u.message&&i("div",{class:"quiet",children:i(E,{children:u.message})})]})]})),i("dt",{children:"Paths"}),i("dd",{children:["reaches ",V(d.paths,"path"),d.overriddenPaths>0n&&i(A,{children:[", overridden on ",d.overriddenPaths.toLocaleString("en-US")]})]}),d.overriddenBy.length>0&&i(A,{children:[i("dt",{children:"Overridden by"}),i("dd",{children:i("ul",{class:"inline",children:[d.overriddenBy.slice(0,50).map(u=>i("li",{children:i(me,{kind:e,policy:u})})),d.overriddenBy.length>50&&i("li",{children:["and ",d.overriddenBy.length-50," more"]})]})})]}),d.overriddenUnits.length>0&&i(A,{children:[i("dt",{children:"Overridden fields"}),i("dd",{children:i("code",{children:i(E,{children:d.overriddenUnits.join(", ")})})})]}),d.references.map(u=>i(A,{children:[i("dt",{children:i("code",{children:i(E,{children:u.field})})}),i("dd",{children:[i("span",{class:`badge ${u.outcome==="Accepted"?"good":"bad"}`,children:u.outcome})," ",u.nodes.slice(0,20).map((f,m)=>i(A,{children:[m>0&&", ",i(te,{object:f})]})),u.nodes.length>20&&` and ${u.nodes.length-20} more`,u.message&&i("div",{class:"quiet",children:i(E,{children:u.message})})]})]}))]}),d.warnings.map(u=>i(Z,{tone:"unknown",children:i("p",{children:i(E,{children:u})})}))]}),i("section",{"aria-label":"Paths",children:[i("h2",{children:["Paths ",i("span",{class:"count",children:V(d?.paths??c.paths.length,"path")})]}),c.paths.length>0?i("div",{class:"scroll",tabIndex:0,role:"region","aria-label":"Paths that the policy reaches",children:i("table",{class:"list",children:[i("thead",{children:i("tr",{children:[i("th",{scope:"col",children:"Path"}),i("th",{scope:"col",children:"Sets"}),i("th",{scope:"col",children:"Overridden"})]})}),i("tbody",{children:c.paths.map(u=>i("tr",{children:[i("td",{children:i(Ie,{path:u.path})}),i("td",{children:i(Ec,{units:u.effectiveUnits})}),i("td",{children:i(Ec,{units:u.overriddenUnits})})]},u.path))})]})}):i("p",{class:"quiet",children:"It reaches no path."}),c.nextPageToken&&i("p",{children:i("button",{onClick:()=>a(s+5),disabled:l.loading,children:"Show more paths"})})]}),c.objects.length>0&&i("section",{"aria-label":"Objects",children:[i("h2",{children:"Objects that it affects"}),i("ul",{class:"columns",children:[c.objects.slice(0,200).map(u=>i("li",{children:i(te,{object:u})})),c.objects.length>200&&i("li",{children:["and ",(c.objects.length-200).toLocaleString("en-US")," more"]})]})]})]})}})]})}function Ec({units:e}){return e.length?i(A,{children:e.map((t,n)=>i(A,{children:[n>0&&", ",t==="*"?"everything":i("code",{children:i(E,{children:t})})]}))}):i("span",{class:"quiet",children:"none"})}var Ve={manifests:"",deletes:"",address:""};function fm(e){let t=e.split("/"),[n,o]=ye(t[0]??""),r=t[t.length-1]??"",s=t.length>2?`
  namespace: ${JSON.stringify(t[1])}`:"";return`# Paste the whole manifest here and edit it. It replaces the object of this name:
# kubectl get ${n.toLowerCase()} ${r}${t.length>2?` -n ${t[1]}`:""} -o yaml
apiVersion: ${o}/VERSION
kind: ${n}
metadata:
  name: ${JSON.stringify(r)}${s}
spec: {}
`}function Sc(){let{query:e}=M(re),{snapshot:t}=M(G),n=e.toString();if(Ve.address!==n){Ve.address=n;let[y,b]=[e.get("change"),e.get("delete")];b&&(Ve.deletes=b,Ve.manifests=""),y&&(Ve.manifests=fm(y),Ve.deletes="")}let[o,r]=W(Ve.manifests),[s,a]=W(Ve.deletes),[l,c]=W({busy:!1,snapshot:"",of:""});z(()=>{r(Ve.manifests),a(Ve.deletes),c({busy:!1,snapshot:"",of:""})},[n]);let d=pe(void 0),u=pe(null),f=JSON.stringify([o,s]);Object.assign(Ve,{manifests:o,deletes:s});let m=async()=>{d.current?.abort();let y=d.current=new AbortController;c(b=>({...b,busy:!0}));try{let b=s.split(/[\s,]+/).filter(Boolean),w=await ie.previewChange({manifests:o,deletes:b},{signal:y.signal});c({reply:w,busy:!1,snapshot:w.version?`${w.version.epoch}/${w.version.generation}`:"",of:f})}catch(b){y.signal.aborted||c({error:O.from(b),busy:!1,snapshot:"",of:f})}};z(()=>()=>d.current?.abort(),[]),z(()=>{e.get("delete")&&m()},[n]),z(()=>{l.reply&&l.snapshot!==t&&l.of===f&&m()},[t]);let{reply:p,error:h}=l;return i(A,{children:[i(X,{text:"Preview a change"}),i("p",{class:"quiet",children:"Shows what would change if these objects were applied or deleted. Nothing is applied."}),i("form",{class:"preview",onSubmit:y=>{y.preventDefault(),m()},children:[i("label",{children:["Manifests to apply (YAML or JSON, several documents)",i("textarea",{name:"manifests",rows:o||!s?14:4,class:"code",spellcheck:!1,value:o,onInput:y=>r(y.currentTarget.value),onKeyDown:y=>{y.key==="Enter"&&(y.ctrlKey||y.metaKey)&&m()}})]}),i("label",{children:["Objects to delete",i("input",{name:"deletes",placeholder:"kind/namespace/name",spellcheck:!1,autocomplete:"off",value:s,onInput:y=>a(y.currentTarget.value)})]}),i("p",{class:"buttons",children:[i("button",{class:"primary",type:"submit",disabled:l.busy||!o.trim()&&!s.trim(),children:l.busy?"Computing":"Preview"}),i("button",{type:"button",onClick:()=>u.current.click(),children:"Open a file"}),i("input",{ref:u,type:"file",hidden:!0,accept:".yaml,.yml,.json","aria-label":"File of manifests",onChange:async y=>{let b=y.currentTarget.files?.[0];b&&r(await b.text())}})]})]}),h&&i(We,{error:h}),p&&l.of!==f&&i("p",{class:"quiet",children:"The input was changed after this preview."}),p&&i(mm,{reply:p})]})}function mm({reply:e}){let t=e.changes.flatMap(r=>r.units).filter(r=>r.afterJson===void 0).length,n=new Set(e.changes.flatMap(r=>r.paths)).size,o=!e.changes.length&&!e.pathsAdded.length&&!e.pathsRemoved.length;return i("section",{"aria-label":"Result","aria-live":"polite",class:"preview-result",children:[i("h2",{children:o?"Nothing changes":"What changes"}),i(we,{kinds:e.kinds,truncated:e.truncated}),e.problems.length>0&&i(Z,{tone:"error",title:"Problems in the manifests",children:[i("ul",{children:e.problems.map(r=>i("li",{children:[r.code&&i("a",{href:Be(r.code),children:r.code})," ",i(E,{children:r.location}),": ",i(E,{children:r.message})]}))}),i("p",{children:"The rest of the manifests is used."})]}),!o&&i("p",{children:[V(e.changes.length,"effective policy changes","effective policies change")," on ",V(n,"path"),e.pathsAdded.length>0&&`, ${V(e.pathsAdded.length,"path is","paths are")} added`,e.pathsRemoved.length>0&&`, ${V(e.pathsRemoved.length,"path is","paths are")} removed`,"."]}),e.losesValues&&i(Z,{tone:"error",title:`${V(t||1,"value is","values are")} lost`,children:i("p",{children:"No policy sets them afterwards: the proxy uses its own default."})}),e.pathsRemoved.length>0&&i(A,{children:[i("h3",{children:"Removed paths"}),i(Ue,{paths:e.pathsRemoved,first:10})]}),e.pathsAdded.length>0&&i(A,{children:[i("h3",{children:"Added paths"}),i(Ue,{paths:e.pathsAdded,first:10})]}),e.changes.map(r=>i(hm,{change:r}))]})}function hm({change:e}){return i("article",{class:"answer",children:[i("h3",{children:i(Q,{kind:e.kind})}),i("div",{class:"answer-paths",children:[i("span",{class:"quiet",children:"on"}),i(Ue,{paths:e.paths,first:4})]}),e.newlyRejected.length>0&&i(Z,{tone:"error",title:"Rejected after the change",children:i("ul",{children:e.newlyRejected.map(t=>i("li",{children:[i(me,{kind:e.kind,policy:t.policy})," ",i("span",{class:"badge bad",children:t.reason})," ",i(E,{children:t.message})]}))})}),e.units.length>0&&i("div",{class:"scroll",tabIndex:0,role:"region","aria-label":"Changed values",children:i("table",{class:"diff",children:[i("thead",{children:i("tr",{children:[i("th",{scope:"col",children:"Field"}),i("th",{scope:"col",children:"Before"}),i("th",{scope:"col",children:"After"})]})}),i("tbody",{children:e.units.map(t=>i("tr",{children:[i("th",{scope:"row",children:[i("code",{children:i(E,{children:t.unit==="*"?"whole policy":t.unit})})," ",t.beforeJson!==void 0&&t.afterJson===void 0&&i("span",{class:"badge bad",children:"lost"}),t.beforeJson===void 0&&i("span",{class:"badge good",children:"new"})]}),i("td",{class:t.beforeJson===t.afterJson||t.beforeJson===void 0?"":"before",children:i(xc,{kind:e.kind,json:t.beforeJson,origin:t.beforeOrigin})}),i("td",{class:t.beforeJson===t.afterJson||t.afterJson===void 0?"":"after",children:i(xc,{kind:e.kind,json:t.afterJson,origin:t.afterOrigin})})]}))})]})})]})}function xc({kind:e,json:t,origin:n}){return t===void 0?i("span",{class:"quiet",children:"no value"}):i(A,{children:[i("code",{class:"value",children:i(E,{children:Ht(t)})}),i("div",{class:"small",children:i(et,{kind:e,origin:n})})]})}function Nc(){let{status:e,syncedAt:t,incomplete:n}=M(G),{catalog:o}=M(ce),[r,s]=W(!1),a=e?.kinds.filter(l=>l.state===1&&l.policies===0n).length??0;return i(A,{children:[i(X,{text:"Server"}),e?i(A,{children:[i("dl",{class:"facts",children:[i("dt",{children:"Version"}),i("dd",{children:["entail ",i(E,{children:e.serverVersion})]}),i("dt",{children:"Snapshot"}),i("dd",{children:["generation ",e.version?.generation.toLocaleString("en-US")," ",i("span",{class:"quiet",children:["of epoch ",i(E,{children:e.version?.epoch})]})]}),i("dt",{children:"In sync"}),i("dd",{children:t?`${new Date(t).toLocaleDateString()} ${Qe(t)}`:"not known"}),i("dt",{children:"Paths"}),i("dd",{children:[V(e.paths,"path"),", ",V(e.distinctAnswers,"distinct answer")]}),o&&i(A,{children:[i("dt",{children:"Objects"}),i("dd",{children:[V(o.names.length,"node")," in the topology"]})]})]}),e.problems.length>0&&i("section",{"aria-label":"Problems",children:[i("h2",{children:[V(e.problems.length,"problem")," in the inputs"]}),i("ul",{children:e.problems.slice(0,200).map(l=>i("li",{children:[l.code&&i("a",{href:Be(l.code),children:l.code})," ",i(E,{children:l.location}),": ",i(E,{children:l.message})]}))})]}),i("h2",{children:["Kinds ",i("span",{class:"count",children:e.kinds.length})]}),i("div",{class:"scroll",tabIndex:0,role:"region","aria-label":"Kinds",children:i("table",{class:"list",children:[i("thead",{children:i("tr",{children:[i("th",{scope:"col",children:"Kind"}),i("th",{scope:"col",children:"State"}),i("th",{scope:"col",class:"number",children:"Policies"}),i("th",{scope:"col",class:"number",children:"Accepted"}),i("th",{scope:"col",children:"Profile"}),i("th",{scope:"col",children:"Answers at"})]})}),i("tbody",{children:e.kinds.filter(l=>r||l.state!==1||l.policies>0n).sort((l,c)=>+(l.state===1)-+(c.state===1)||Number(c.policies-l.policies)).map(l=>{let c=n.find(d=>d.kind===l.kind);return i("tr",{children:[i("td",{children:i(Q,{kind:l.kind})}),i("td",{children:[l.state===1?i("span",{class:"badge good",children:"COMPLETE"}):i(as,{state:c?.state??"UNKNOWN"}),l.notComputed&&i("div",{class:"small quiet",children:["not computed: ",i(E,{children:l.notComputed})]})]}),i("td",{class:"number",children:l.policies.toLocaleString("en-US")}),i("td",{class:"number",children:l.accepted.toLocaleString("en-US")}),i("td",{children:i(E,{children:l.profile||"none"})}),i("td",{children:i(E,{children:l.scopeLevels.join(", ")})})]},l.kind)})})]})}),a>0&&i("p",{children:i("button",{class:"link",onClick:()=>s(!r),children:[r?"Hide":"Show"," ",V(a,"kind")," without policies"]})}),i("p",{class:"quiet small",children:[i("a",{href:"assets/licenses.txt",children:"Licences"})," of what the console contains."]})]}):i(ct,{})]})}var jc=Object.defineProperty,gm=(e,t,n)=>t in e?jc(e,t,{enumerable:!0,configurable:!0,writable:!0,value:n}):e[t]=n,bm=(e,t)=>{for(var n in t)jc(e,n,{get:t[n],enumerable:!0})},ym=(e,t,n)=>gm(e,typeof t!="symbol"?t+"":t,n),wm={};bm(wm,{Graph:()=>Te,alg:()=>Ps});var vm=Object.defineProperty,$c=(e,t)=>{for(var n in t)vm(e,n,{get:t[n],enumerable:!0})},Cs=class{constructor(e){this._isDirected=!0,this._isMultigraph=!1,this._isCompound=!1,this._nodes={},this._in={},this._preds={},this._out={},this._sucs={},this._edgeObjs={},this._edgeLabels={},this._nodeCount=0,this._edgeCount=0,this._defaultNodeLabelFn=()=>{},this._defaultEdgeLabelFn=()=>{},e&&(this._isDirected="directed"in e?e.directed:!0,this._isMultigraph="multigraph"in e?e.multigraph:!1,this._isCompound="compound"in e?e.compound:!1),this._isCompound&&(this._parent={},this._children={},this._children["\0"]={})}isDirected(){return this._isDirected}isMultigraph(){return this._isMultigraph}isCompound(){return this._isCompound}setGraph(e){return this._label=e,this}graph(){return this._label}setDefaultNodeLabel(e){return typeof e!="function"?this._defaultNodeLabelFn=()=>e:this._defaultNodeLabelFn=e,this}nodeCount(){return this._nodeCount}nodes(){return Object.keys(this._nodes)}sources(){return this.nodes().filter(e=>Object.keys(this._in[e]).length===0)}sinks(){return this.nodes().filter(e=>Object.keys(this._out[e]).length===0)}setNodes(e,t){return e.forEach(n=>{t!==void 0?this.setNode(n,t):this.setNode(n)}),this}setNode(e,t){return e in this._nodes?(arguments.length>1&&(this._nodes[e]=t),this):(this._nodes[e]=arguments.length>1?t:this._defaultNodeLabelFn(e),this._isCompound&&(this._parent[e]="\0",this._children[e]={},this._children["\0"][e]=!0),this._in[e]={},this._preds[e]={},this._out[e]={},this._sucs[e]={},++this._nodeCount,this)}node(e){return this._nodes[e]}hasNode(e){return e in this._nodes}removeNode(e){if(e in this._nodes){let t=n=>this.removeEdge(this._edgeObjs[n]);delete this._nodes[e],this._isCompound&&(this._removeFromParentsChildList(e),delete this._parent[e],this.children(e).forEach(n=>{this.setParent(n)}),delete this._children[e]),Object.keys(this._in[e]).forEach(t),delete this._in[e],delete this._preds[e],Object.keys(this._out[e]).forEach(t),delete this._out[e],delete this._sucs[e],--this._nodeCount}return this}setParent(e,t){if(!this._isCompound)throw new Error("Cannot set parent in a non-compound graph");if(t===void 0)t="\0";else{t+="";for(let n=t;n!==void 0;n=this.parent(n))if(n===e)throw new Error("Setting "+t+" as parent of "+e+" would create a cycle");this.setNode(t)}return this.setNode(e),this._removeFromParentsChildList(e),this._parent[e]=t,this._children[t][e]=!0,this}parent(e){if(this._isCompound){let t=this._parent[e];if(t!=="\0")return t}}children(e="\0"){if(this._isCompound){let t=this._children[e];if(t)return Object.keys(t)}else{if(e==="\0")return this.nodes();if(this.hasNode(e))return[]}return[]}predecessors(e){let t=this._preds[e];if(t)return Object.keys(t)}successors(e){let t=this._sucs[e];if(t)return Object.keys(t)}neighbors(e){let t=this.predecessors(e);if(t){let n=new Set(t),o=this.successors(e);if(o)for(let r of o)n.add(r);return Array.from(n.values())}}isLeaf(e){var t;let n;return this.isDirected()?n=this.successors(e):n=this.neighbors(e),((t=n?.length)!=null?t:0)===0}filterNodes(e){let t=new this.constructor({directed:this._isDirected,multigraph:this._isMultigraph,compound:this._isCompound});t.setGraph(this.graph()),Object.entries(this._nodes).forEach(([r,s])=>{e(r)&&t.setNode(r,s)}),Object.values(this._edgeObjs).forEach(r=>{t.hasNode(r.v)&&t.hasNode(r.w)&&t.setEdge(r,this.edge(r))});let n={},o=r=>{let s=this.parent(r);return!s||t.hasNode(s)?(n[r]=s,s):s in n?n[s]:o(s)};return this._isCompound&&t.nodes().forEach(r=>t.setParent(r,o(r))),t}setDefaultEdgeLabel(e){return typeof e!="function"?this._defaultEdgeLabelFn=()=>e:this._defaultEdgeLabelFn=e,this}edgeCount(){return this._edgeCount}edges(){return Object.values(this._edgeObjs)}setPath(e,t){return e.reduce((n,o)=>(t!==void 0?this.setEdge(n,o,t):this.setEdge(n,o),o)),this}setEdge(e,t,n,o){let r,s,a,l,c=!1;typeof e=="object"&&e!==null&&"v"in e?(r=e.v,s=e.w,a=e.name,arguments.length===2&&(l=t,c=!0)):(r=e,s=t,a=o,arguments.length>2&&(l=n,c=!0)),r=""+r,s=""+s,a!==void 0&&(a=""+a);let d=nn(this._isDirected,r,s,a);if(d in this._edgeLabels)return c&&(this._edgeLabels[d]=l),this;if(a!==void 0&&!this._isMultigraph)throw new Error("Cannot set a named edge when isMultigraph = false");this.setNode(r),this.setNode(s),this._edgeLabels[d]=c?l:this._defaultEdgeLabelFn(r,s,a);let u=Em(this._isDirected,r,s,a);return r=u.v,s=u.w,Object.freeze(u),this._edgeObjs[d]=u,Ac(this._preds[s],r),Ac(this._sucs[r],s),this._in[s][d]=u,this._out[r][d]=u,this._edgeCount++,this}edge(e,t,n){let o=arguments.length===1?Ss(this._isDirected,e):nn(this._isDirected,e,t,n);return this._edgeLabels[o]}edgeAsObj(e,t,n){let o=arguments.length===1?this.edge(e):this.edge(e,t,n);return typeof o!="object"||o===null?{label:o}:o}hasEdge(e,t,n){return(arguments.length===1?Ss(this._isDirected,e):nn(this._isDirected,e,t,n))in this._edgeLabels}removeEdge(e,t,n){let o=arguments.length===1?Ss(this._isDirected,e):nn(this._isDirected,e,t,n),r=this._edgeObjs[o];if(r){let s=r.v,a=r.w;delete this._edgeLabels[o],delete this._edgeObjs[o],_c(this._preds[a],s),_c(this._sucs[s],a),delete this._in[a][o],delete this._out[s][o],this._edgeCount--}return this}inEdges(e,t){return this.isDirected()?this.filterEdges(this._in[e],e,t):this.nodeEdges(e,t)}outEdges(e,t){return this.isDirected()?this.filterEdges(this._out[e],e,t):this.nodeEdges(e,t)}nodeEdges(e,t){if(e in this._nodes)return this.filterEdges({...this._in[e],...this._out[e]},e,t)}_removeFromParentsChildList(e){delete this._children[this._parent[e]][e]}filterEdges(e,t,n){if(!e)return;let o=Object.values(e);return n?o.filter(r=>r.v===t&&r.w===n||r.v===n&&r.w===t):o}};function Ac(e,t){e[t]?e[t]++:e[t]=1}function _c(e,t){e[t]!==void 0&&!--e[t]&&delete e[t]}function nn(e,t,n,o){let r=""+t,s=""+n;if(!e&&r>s){let a=r;r=s,s=a}return r+""+s+""+(o===void 0?"\0":o)}function Em(e,t,n,o){let r=""+t,s=""+n;if(!e&&r>s){let l=r;r=s,s=l}let a={v:r,w:s};return o&&(a.name=o),a}function Ss(e,t){return nn(e,t.v,t.w,t.name)}var km={};$c(km,{read:()=>Am,write:()=>xm});function xm(e){let t={options:{directed:e.isDirected(),multigraph:e.isMultigraph(),compound:e.isCompound()},nodes:Sm(e),edges:Nm(e)},n=e.graph();return n!==void 0&&(t.value=structuredClone(n)),t}function Sm(e){return e.nodes().map(t=>{let n=e.node(t),o=e.parent(t),r={v:t};return n!==void 0&&(r.value=n),o!==void 0&&(r.parent=o),r})}function Nm(e){return e.edges().map(t=>{let n=e.edge(t),o={v:t.v,w:t.w};return t.name!==void 0&&(o.name=t.name),n!==void 0&&(o.value=n),o})}function Am(e){let t=new Cs(e.options);return e.value!==void 0&&t.setGraph(e.value),e.nodes.forEach(n=>{t.setNode(n.v,n.value),n.parent&&t.setParent(n.v,n.parent)}),e.edges.forEach(n=>{t.setEdge({v:n.v,w:n.w,name:n.name},n.value)}),t}var Ps={};$c(Ps,{CycleException:()=>vo,bellmanFord:()=>Xc,components:()=>Tm,dijkstra:()=>wo,dijkstraAll:()=>Pm,findCycles:()=>Lm,floydWarshall:()=>Vm,isAcyclic:()=>Mm,postorder:()=>Wm,preorder:()=>Um,prim:()=>Bm,shortestPaths:()=>Dm,tarjan:()=>Hc,topsort:()=>zc});var _m=()=>1;function Xc(e,t,n,o){return Im(e,String(t),n||_m,o||function(r){var s;return(s=e.outEdges(r))!=null?s:[]})}function Im(e,t,n,o){let r={},s,a=0,l=e.nodes(),c=function(f){let m=r[f.v],p=r[f.w];if(!m||!p)return;let h=n(f);m.distance+h<p.distance&&(r[f.w]={distance:m.distance+h,predecessor:f.v},s=!0)},d=function(){l.forEach(function(f){o(f).forEach(function(m){let p=m.v===f?m.v:m.w,h=p===m.v?m.w:m.v;c({v:p,w:h})})})};l.forEach(function(f){let m=f===t?0:Number.POSITIVE_INFINITY;r[f]={distance:m,predecessor:""}});let u=l.length;for(let f=1;f<u&&(s=!1,a++,d(),!!s);f++);if(a===u-1&&(s=!1,d(),s))throw new Error("The graph contains a negative weight cycle");return r}function Tm(e){let t={},n=[],o;function r(s){var a,l;s in t||(t[s]=!0,o.push(s),(a=e.successors(s))==null||a.forEach(r),(l=e.predecessors(s))==null||l.forEach(r))}return e.nodes().forEach(function(s){o=[],r(s),o.length&&n.push(o)}),n}var Jc=class{constructor(){this._arr=[],this._keyIndices={}}size(){return this._arr.length}keys(){return this._arr.map(e=>e.key)}has(e){return e in this._keyIndices}priority(e){let t=this._keyIndices[e];if(t!==void 0)return this._arr[t].priority}min(){if(this.size()===0)throw new Error("Queue underflow");return this._arr[0].key}add(e,t){let n=this._keyIndices,o=String(e);if(!(o in n)){let r=this._arr,s=r.length;return n[o]=s,r.push({key:o,priority:t}),this._decrease(s),!0}return!1}removeMin(){if(this.size()===0)throw new Error("Queue underflow");this._swap(0,this._arr.length-1);let e=this._arr.pop();return delete this._keyIndices[e.key],this._heapify(0),e.key}decrease(e,t){let n=this._keyIndices[e];if(n===void 0)throw new Error(`Key not found: ${e}`);let o=this._arr[n].priority;if(t>o)throw new Error(`New priority is greater than current priority. Key: ${e} Old: ${o} New: ${t}`);this._arr[n].priority=t,this._decrease(n)}_heapify(e){let t=this._arr,n=2*e,o=n+1,r=e;n<t.length&&(r=t[n].priority<t[r].priority?n:r,o<t.length&&(r=t[o].priority<t[r].priority?o:r),r!==e&&(this._swap(e,r),this._heapify(r)))}_decrease(e){let t=this._arr,n=t[e].priority,o;for(;e!==0&&(o=e>>1,!(t[o].priority<n));)this._swap(e,o),e=o}_swap(e,t){let n=this._arr,o=this._keyIndices,r=n[e],s=n[t];n[e]=s,n[t]=r,o[s.key]=e,o[r.key]=t}},Rm=()=>1;function wo(e,t,n,o){let r=function(s){var a;return(a=e.outEdges(s))!=null?a:[]};return Cm(e,String(t),n||Rm,o||r)}function Cm(e,t,n,o){let r={},s=new Jc,a,l,c=function(d){let u=d.v!==a?d.v:d.w,f=r[u];if(!f)return;let m=n(d),p=l.distance+m;if(m<0)throw new Error("dijkstra does not allow negative edge weights. Bad edge: "+d+" Weight: "+m);p<f.distance&&(f.distance=p,f.predecessor=a,s.decrease(u,p))};for(e.nodes().forEach(function(d){let u=d===t?0:Number.POSITIVE_INFINITY;r[d]={distance:u,predecessor:""},s.add(d,u)});s.size()>0;){a=s.removeMin();let d=r[a];if(!d||d.distance===Number.POSITIVE_INFINITY)break;l=d,o(a).forEach(c)}return r}function Pm(e,t,n){return e.nodes().reduce(function(o,r){return o[r]=wo(e,r,t,n),o},{})}function Hc(e){let t=0,n=[],o={},r=[];function s(a){var l;let c=o[a]={onStack:!0,lowlink:t,index:t++};if(n.push(a),(l=e.successors(a))==null||l.forEach(function(d){if(d in o){let u=o[d];u!=null&&u.onStack&&(c.lowlink=Math.min(c.lowlink,u.index))}else{s(d);let u=o[d];u&&(c.lowlink=Math.min(c.lowlink,u.lowlink))}}),c.lowlink===c.index){let d=[],u;do{u=n.pop();let f=o[u];f&&(f.onStack=!1),d.push(u)}while(a!==u);r.push(d)}}return e.nodes().forEach(function(a){a in o||s(a)}),r}function Lm(e){return Hc(e).filter(function(t){var n;let o=t[0];return o?t.length>1||t.length===1&&((n=e.outEdges(o,o))!=null?n:[]).length>0:!1})}var Gm=()=>1;function Vm(e,t,n){return Om(e,t||Gm,n||function(o){var r;return(r=e.outEdges(o))!=null?r:[]})}function Om(e,t,n){let o={},r=e.nodes();return r.forEach(function(s){let a={};o[s]=a,a[s]={distance:0,predecessor:""},r.forEach(function(l){s!==l&&(a[l]={distance:Number.POSITIVE_INFINITY,predecessor:""})}),n(s).forEach(function(l){let c=l.v===s?l.w:l.v,d=t(l);a[c]={distance:d,predecessor:s}})}),r.forEach(function(s){let a=o[s];a&&r.forEach(function(l){let c=o[l];c&&r.forEach(function(d){let u=c[s],f=a[d],m=c[d];if(u&&f&&m){let p=u.distance+f.distance;p<m.distance&&(m.distance=p,m.predecessor=f.predecessor)}})})}),o}var vo=class extends Error{constructor(e){super(e),this.name="CycleException"}};function zc(e){let t={},n={},o=[];function r(s){var a;if(s in n)throw new vo;s in t||(n[s]=!0,t[s]=!0,(a=e.predecessors(s))==null||a.forEach(r),delete n[s],o.push(s))}if(e.sinks().forEach(r),Object.keys(t).length!==e.nodeCount())throw new vo;return o}function Mm(e){try{zc(e)}catch(t){if(t instanceof vo)return!1;throw t}return!0}function Fm(e,t,n,o,r){Array.isArray(t)||(t=[t]);let s=(l=>{var c;return(c=e.isDirected()?e.successors(l):e.neighbors(l))!=null?c:[]}),a={};return t.forEach(function(l){if(!e.hasNode(l))throw new Error("Graph does not have node: "+l);r=qc(e,l,n==="post",a,s,o,r)}),r}function qc(e,t,n,o,r,s,a){return t in o||(o[t]=!0,n||(a=s(a,t)),r(t).forEach(function(l){a=qc(e,l,n,o,r,s,a)}),n&&(a=s(a,t))),a}function Qc(e,t,n){return Fm(e,t,n,function(o,r){return o.push(r),o},[])}function Wm(e,t){return Qc(e,t,"post")}function Um(e,t){return Qc(e,t,"pre")}function Bm(e,t){var n;let o=new Cs,r={},s=new Jc,a;function l(u){let f=u.v===a?u.w:u.v,m=s.priority(f);if(m!==void 0){let p=t(u);p<m&&(r[f]=a,s.decrease(f,p))}}if(e.nodeCount()===0)return o;e.nodes().forEach(function(u){s.add(u,Number.POSITIVE_INFINITY),o.setNode(u)});let c=e.nodes()[0];c!==void 0&&s.decrease(c,0);let d=!1;for(;s.size()>0;){if(a=s.removeMin(),a in r)o.setEdge(a,r[a]);else{if(d)throw new Error("Input graph is not connected: "+e);d=!0}(n=e.nodeEdges(a))==null||n.forEach(l)}return o}function Dm(e,t,n,o){return Ym(e,t,n,o??(r=>{var s;return(s=e.outEdges(r))!=null?s:[]}))}function Ym(e,t,n,o){if(n===void 0)return wo(e,t,n,o);let r=!1,s=e.nodes();for(let a=0;a<s.length;a++){let l=s[a];if(l===void 0)continue;let c=o(l);for(let d=0;d<c.length;d++){let u=c[d];if(!u)continue;let f=u.v===l?u.v:u.w,m=f===u.v?u.w:u.v;n({v:f,w:m})<0&&(r=!0)}if(r)return Xc(e,t,n,o)}return wo(e,t,n,o)}var Te=Cs;function Ct(e,t,n,o){let r=o;for(;e.hasNode(r);)r=Ls(o);return n.dummy=t,e.setNode(r,n),r}function Zm(e){let t=new Te().setGraph(e.graph());return e.nodes().forEach(n=>t.setNode(n,e.node(n))),e.edges().forEach(n=>{let o=t.edge(n.v,n.w)||{weight:0,minlen:1},r=e.edge(n);t.setEdge(n.v,n.w,{weight:o.weight+r.weight,minlen:Math.max(o.minlen,r.minlen)})}),t}function eu(e){let t=new Te({multigraph:e.isMultigraph()}).setGraph(e.graph());return e.nodes().forEach(n=>{e.children(n).length||t.setNode(n,e.node(n))}),e.edges().forEach(n=>{t.setEdge(n,e.edge(n))}),t}function Ic(e,t){let n=e.x,o=e.y,r=t.x-n,s=t.y-o,a=e.width/2,l=e.height/2;if(!r&&!s)throw new Error("Not possible to find intersection inside of the rectangle");let c,d;return r===0||Math.abs(s)*a>Math.abs(r)*l?(s<0&&(l=-l),c=l*r/s,d=l):(r<0&&(a=-a),c=a,d=a*s/r),{x:n+c,y:o+d}}function ko(e){let t=on(nu(e)+1).map(()=>[]);return e.nodes().forEach(n=>{let o=e.node(n),r=o.rank;r!==void 0&&(t[r]||(t[r]=[]),t[r][o.order]=n)}),t}function Km(e){let t=e.nodes().map(o=>{let r=e.node(o).rank;return r===void 0?Number.MAX_VALUE:r}),n=De(Math.min,t);e.nodes().forEach(o=>{let r=e.node(o);Object.hasOwn(r,"rank")&&(r.rank-=n)})}function jm(e){let t=e.nodes().map(a=>e.node(a).rank).filter(a=>a!==void 0),n=De(Math.min,t),o=[];e.nodes().forEach(a=>{let l=e.node(a).rank-n;o[l]||(o[l]=[]),o[l].push(a)});let r=0,s=e.graph().nodeRankFactor;Array.from(o).forEach((a,l)=>{a===void 0&&l%s!==0?--r:a!==void 0&&r&&a.forEach(c=>e.node(c).rank+=r)})}function Tc(e,t,n,o){let r={width:0,height:0};return arguments.length>=4&&(r.rank=n,r.order=o),Ct(e,"border",r,t)}function $m(e,t=tu){let n=[];for(let o=0;o<e.length;o+=t){let r=e.slice(o,o+t);n.push(r)}return n}var tu=65535;function De(e,t){if(t.length>tu){let n=$m(t);return e(...n.map(o=>e(...o)))}else return e(...t)}function nu(e){let t=e.nodes().map(n=>{let o=e.node(n).rank;return o===void 0?Number.MIN_VALUE:o});return De(Math.max,t)}function Xm(e,t){let n={lhs:[],rhs:[]};return e.forEach(o=>{t(o)?n.lhs.push(o):n.rhs.push(o)}),n}function Jm(e,t){return t()}var Hm=0;function Ls(e){let t=++Hm;return e+(""+t)}function on(e,t,n=1){t==null&&(t=e,e=0);let o=s=>s<t;n<0&&(o=s=>t<s);let r=[];for(let s=e;o(s);s+=n)r.push(s);return r}function Eo(e,t){let n={};for(let o of t)e[o]!==void 0&&(n[o]=e[o]);return n}function xo(e,t){let n;return typeof t=="string"?n=o=>o[t]:n=t,Object.entries(e).reduce((o,[r,s])=>(o[r]=n(s,r),o),{})}function zm(e,t){return e.reduce((n,o,r)=>(n[o]=t[r],n),{})}var So="\0";function ou(e,t,n){var o,r,s,a,l,c;if(!(e&&t&&n&&t.dummy==="edge"&&n.dummy==="edge"&&t.edgeObj&&n.edgeObj&&e[t.edgeObj.v]&&e[n.edgeObj.v]&&e[t.edgeObj.w]&&e[n.edgeObj.w]))return 0;let d=!0;t.edgeObj.w===n.edgeObj.w&&(d=!1);let u=d?(r=(o=e[t.edgeObj.v])==null?void 0:o.rank)!=null?r:NaN+1:(a=(s=e[t.edgeObj.w])==null?void 0:s.rank)!=null?a:NaN-1,f=Object.entries(e).find(y=>{var b,w;return((b=y[1].edgeObj)==null?void 0:b.v)===t.edgeObj.v&&((w=y[1].edgeObj)==null?void 0:w.w)===t.edgeObj.w&&y[1].rank===u}),m=Object.entries(e).find(y=>{var b,w;return((b=y[1].edgeObj)==null?void 0:b.v)===n.edgeObj.v&&((w=y[1].edgeObj)==null?void 0:w.w)===n.edgeObj.w&&y[1].rank===u});if(!f||!m)return 0;let p=(l=f[1].order)!=null?l:NaN,h=(c=m[1].order)!=null?c:NaN;return isNaN(p-h)?0:p-h}var qm=class{constructor(){ym(this,"_sentinel");let e={};e._next=e._prev=e,this._sentinel=e}dequeue(){let e=this._sentinel,t=e._prev;if(t!==e)return Rc(t),t}enqueue(e){let t=this._sentinel;e._prev&&e._next&&Rc(e),e._next=t._next,t._next._prev=e,t._next=e,e._prev=t}toString(){let e=[],t=this._sentinel,n=t._prev;for(;n!==t;)e.push(JSON.stringify(n,Qm)),n=n._prev;return"["+e.join(", ")+"]"}};function Rc(e){e._prev._next=e._next,e._next._prev=e._prev,delete e._next,delete e._prev}function Qm(e,t){if(e!=="_next"&&e!=="_prev")return t}var eh=qm,th=()=>1;function nh(e,t){if(e.nodeCount()<=1)return[];let n=rh(e,t||th);return oh(n.graph,n.buckets,n.zeroIdx).flatMap(o=>e.outEdges(o.v,o.w)||[])}function oh(e,t,n){var o;let r=[],s=t[t.length-1],a=t[0],l;for(;e.nodeCount();){for(;l=a.dequeue();)Ns(e,t,n,l);for(;l=s.dequeue();)Ns(e,t,n,l);if(e.nodeCount()){for(let c=t.length-2;c>0;--c)if(l=(o=t[c])==null?void 0:o.dequeue(),l){r=r.concat(Ns(e,t,n,l,!0)||[]);break}}}return r}function Ns(e,t,n,o,r){let s=[],a=r?s:void 0;return(e.inEdges(o.v)||[]).forEach(l=>{let c=e.edge(l),d=e.node(l.v);r&&s.push({v:l.v,w:l.w}),d.out-=c,Rs(t,n,d)}),(e.outEdges(o.v)||[]).forEach(l=>{let c=e.edge(l),d=l.w,u=e.node(d);u.in-=c,Rs(t,n,u)}),e.removeNode(o.v),a}function rh(e,t){let n=new Te,o=0,r=0;e.nodes().forEach(l=>{n.setNode(l,{v:l,in:0,out:0})}),e.edges().forEach(l=>{let c=n.edge(l.v,l.w)||0,d=t(l),u=c+d;n.setEdge(l.v,l.w,u);let f=n.node(l.v),m=n.node(l.w);r=Math.max(r,f.out+=d),o=Math.max(o,m.in+=d)});let s=sh(r+o+3).map(()=>new eh),a=o+1;return n.nodes().forEach(l=>{Rs(s,a,n.node(l))}),{graph:n,buckets:s,zeroIdx:a}}function Rs(e,t,n){var o,r,s;n.out?n.in?(s=e[n.out-n.in+t])==null||s.enqueue(n):(r=e[e.length-1])==null||r.enqueue(n):(o=e[0])==null||o.enqueue(n)}function sh(e){let t=[];for(let n=0;n<e;n++)t.push(n);return t}function ah(e,t){(e.graph().acyclicer==="greedy"?nh(e,n(e)):ih(e,t??null)).forEach(o=>{let r=e.edge(o);e.removeEdge(o),r.forwardName=o.name,r.reversed=!0,e.setEdge(o.w,o.v,r,Ls("rev"))});function n(o){return r=>o.edge(r).weight}}function ih(e,t){let n=[],o={},r={};function s(c){Object.hasOwn(r,c)||(r[c]=!0,o[c]=!0,e.outEdges(c).forEach(d=>{Object.hasOwn(o,d.w)?n.push(d):s(d.w)}),delete o[c])}function a(c){var d;Object.hasOwn(r,c)||(r[c]=!0,o[c]=!0,(d=e.outEdges(c))==null||d.forEach(u=>{var f,m;Object.hasOwn(o,u.w)||((f=t.node(c))==null?void 0:f.rank)>((m=t.node(u.w))==null?void 0:m.rank)&&ch(e,u.w,u)?n.push(u):a(u.w)}),delete o[c])}let l=s;return t&&typeof t.node=="function"&&(l=a),e.sources().forEach(l),e.nodes().forEach(l),n}function lh(e){e.edges().forEach(t=>{let n=e.edge(t);if(n.reversed){e.removeEdge(t);let o=n.forwardName;delete n.reversed,delete n.forwardName,e.setEdge(t.w,t.v,n,o)}})}function ch(e,t,n){let o=new Set;function r(s){var a;if(e.sources().includes(s))return!0;o.add(s);for(let l of(a=e.inEdges(s))!=null?a:[])if(!(l.v===n.v&&l.w===n.w)&&!o.has(l.v)&&r(l.v))return!0;return!1}return r(t)}function uh(e){e.graph().dummyChains=[],e.edges().forEach(t=>dh(e,t))}function dh(e,t){let n=t.v,o=e.node(n).rank,r=t.w,s=e.node(r).rank,a=t.name,l=e.edge(t),c=l.labelRank;if(s===o+1)return;e.removeEdge(t);let d,u,f;for(f=0,++o;o<s;++f,++o)l.points=[],u={width:0,height:0,edgeLabel:l,edgeObj:t,rank:o},d=Ct(e,"edge",u,"_d"),o===c&&(u.width=l.width,u.height=l.height,u.dummy="edge-label",u.labelpos=l.labelpos),e.setEdge(n,d,{weight:l.weight},a),f===0&&e.graph().dummyChains.push(d),n=d;e.setEdge(n,r,{weight:l.weight},a)}function ph(e){e.graph().dummyChains.forEach(t=>{let n=e.node(t),o=n.edgeLabel,r;for(e.setEdge(n.edgeObj,o);n.dummy;)r=e.successors(t)[0],e.removeNode(t),o.points.push({x:n.x,y:n.y}),n.dummy==="edge-label"&&(o.x=n.x,o.y=n.y,o.width=n.width,o.height=n.height),t=r,n=e.node(t)})}function Gs(e){let t={};function n(o){let r=e.node(o);if(Object.hasOwn(t,o))return r.rank;t[o]=!0;let s=e.outEdges(o),a=s?s.map(c=>c==null?Number.POSITIVE_INFINITY:n(c.w)-e.edge(c).minlen):[],l=De(Math.min,a);return l===Number.POSITIVE_INFINITY&&(l=0),r.rank=l}e.sources().forEach(n)}function Rt(e,t){return e.node(t.w).rank-e.node(t.v).rank-e.edge(t).minlen}var ru=fh;function fh(e){let t=new Te({directed:!1}),n=e.nodes();if(n.length===0)throw new Error("Graph must have at least one node");let o=n[0],r=e.nodeCount();t.setNode(o,{});let s,a;for(;mh(t,e)<r&&(s=hh(t,e),!!s);)a=t.hasNode(s.v)?Rt(e,s):-Rt(e,s),gh(t,e,a);return t}function mh(e,t){function n(o){let r=t.nodeEdges(o);r&&r.forEach(s=>{let a=s.v,l=o===a?s.w:a;!e.hasNode(l)&&!Rt(t,s)&&(e.setNode(l,{}),e.setEdge(o,l,{}),n(l))})}return e.nodes().forEach(n),e.nodeCount()}function hh(e,t){return t.edges().reduce((n,o)=>{let r=Number.POSITIVE_INFINITY;return e.hasNode(o.v)!==e.hasNode(o.w)&&(r=Rt(t,o)),r<n[0]?[r,o]:n},[Number.POSITIVE_INFINITY,null])[1]}function gh(e,t,n){e.nodes().forEach(o=>t.node(o).rank+=n)}var{preorder:bh,postorder:yh}=Ps,wh=dt;dt.initLowLimValues=Os;dt.initCutValues=Vs;dt.calcCutValue=su;dt.leaveEdge=iu;dt.enterEdge=lu;dt.exchangeEdges=cu;function dt(e){e=Zm(e),Gs(e);let t=ru(e);Os(t),Vs(t,e);let n,o;for(;n=iu(t);)o=lu(t,e,n),cu(t,e,n,o)}function Vs(e,t){let n=yh(e,e.nodes());n=n.slice(0,n.length-1),n.forEach(o=>vh(e,t,o))}function vh(e,t,n){let o=e.node(n).parent,r=e.edge(n,o);r.cutvalue=su(e,t,n)}function su(e,t,n){let o=e.node(n).parent,r=!0,s=t.edge(n,o),a=0;s||(r=!1,s=t.edge(o,n)),a=s.weight;let l=t.nodeEdges(n);return l&&l.forEach(c=>{let d=c.v===n,u=d?c.w:c.v;if(u!==o){let f=d===r,m=t.edge(c).weight;if(a+=f?m:-m,kh(e,n,u)){let p=e.edge(n,u).cutvalue;a+=f?-p:p}}}),a}function Os(e,t){arguments.length<2&&(t=e.nodes()[0]),au(e,{},1,t)}function au(e,t,n,o,r){let s=n,a=e.node(o);t[o]=!0;let l=e.neighbors(o);return l&&l.forEach(c=>{Object.hasOwn(t,c)||(n=au(e,t,n,c,o))}),a.low=s,a.lim=n++,r?a.parent=r:delete a.parent,n}function iu(e){return e.edges().find(t=>e.edge(t).cutvalue<0)}function lu(e,t,n){let o=n.v,r=n.w;t.hasEdge(o,r)||(o=n.w,r=n.v);let s=e.node(o),a=e.node(r),l=s,c=!1;return s.lim>a.lim&&(l=a,c=!0),t.edges().filter(d=>c===Cc(e,e.node(d.v),l)&&c!==Cc(e,e.node(d.w),l)).reduce((d,u)=>Rt(t,u)<Rt(t,d)?u:d)}function cu(e,t,n,o){let r=n.v,s=n.w;e.removeEdge(r,s),e.setEdge(o.v,o.w,{}),Os(e),Vs(e,t),Eh(e,t)}function Eh(e,t){let n=e.nodes().find(r=>!e.node(r).parent);if(!n)return;let o=bh(e,[n]);o=o.slice(1),o.forEach(r=>{let s=e.node(r).parent,a=t.edge(r,s),l=!1;a||(a=t.edge(s,r),l=!0),t.node(r).rank=t.node(s).rank+(l?a.minlen:-a.minlen)})}function kh(e,t,n){return e.hasEdge(t,n)}function Cc(e,t,n){return n.low<=t.lim&&t.lim<=n.lim}var xh=Sh;function Sh(e){let t=e.graph().ranker;if(typeof t=="function")return t(e);switch(t){case"network-simplex":Pc(e);break;case"tight-tree":Ah(e);break;case"longest-path":Nh(e);break;case"none":break;default:Pc(e)}}var Nh=Gs;function Ah(e){Gs(e),ru(e)}function Pc(e){wh(e)}var _h=Ih;function Ih(e){let t=Rh(e),n=e.graph();Array.isArray(n.dummyChains)&&n.dummyChains.forEach(o=>{let r=e.node(o),s=r.edgeObj,a=Th(e,t,s.v,s.w),l=a.path,c=a.lca,d=0,u=l[d],f=!0;for(;o!==s.w;){if(r=e.node(o),f){for(;(u=l[d])!==c&&e.node(u).maxRank<r.rank;)d++;u===c&&(f=!1)}if(!f){for(;d<l.length-1&&e.node(l[d+1]).minRank<=r.rank;)d++;u=l[d]}u!==void 0&&e.setParent(o,u),o=e.successors(o)[0]}})}function Th(e,t,n,o){let r=[],s=[],a=Math.min(t[n].low,t[o].low),l=Math.max(t[n].lim,t[o].lim),c;c=n;do c=e.parent(c),r.push(c);while(c&&(t[c].low>a||l>t[c].lim));let d=c,u=o;for(;(u=e.parent(u))!==d;)s.push(u);return{path:r.concat(s.reverse()),lca:d}}function Rh(e){let t={},n=0;function o(r){let s=n;e.children(r).forEach(o),t[r]={low:s,lim:n++}}return e.children(So).forEach(o),t}function Ch(e){let t=Ct(e,"root",{},"_root"),n=Ph(e),o=Object.values(n),r=De(Math.max,o)-1,s=2*r+1;e.graph().nestingRoot=t,e.edges().forEach(l=>e.edge(l).minlen*=s);let a=Lh(e)+1;e.children(So).forEach(l=>{uu(e,t,s,a,r,n,l)}),e.graph().nodeRankFactor=s}function uu(e,t,n,o,r,s,a){var l;let c=e.children(a);if(!c.length){a!==t&&e.setEdge(t,a,{weight:0,minlen:n});return}let d=Tc(e,"_bt"),u=Tc(e,"_bb"),f=e.node(a);e.setParent(d,a),f.borderTop=d,e.setParent(u,a),f.borderBottom=u,c.forEach(m=>{var p;uu(e,t,n,o,r,s,m);let h=e.node(m),y=h.borderTop?h.borderTop:m,b=h.borderBottom?h.borderBottom:m,w=h.borderTop?o:2*o,v=y!==b?1:r-((p=s[a])!=null?p:0)+1;e.setEdge(d,y,{weight:w,minlen:v,nestingEdge:!0}),e.setEdge(b,u,{weight:w,minlen:v,nestingEdge:!0})}),e.parent(a)||e.setEdge(t,d,{weight:0,minlen:r+((l=s[a])!=null?l:0)})}function Ph(e){let t={};function n(o,r){let s=e.children(o);s&&s.length&&s.forEach(a=>n(a,r+1)),t[o]=r}return e.children(So).forEach(o=>n(o,1)),t}function Lh(e){return e.edges().reduce((t,n)=>t+e.edge(n).weight,0)}function Gh(e){let t=e.graph();e.removeNode(t.nestingRoot),delete t.nestingRoot,e.edges().forEach(n=>{e.edge(n).nestingEdge&&e.removeEdge(n)})}var Vh=Oh;function Oh(e){function t(n){let o=e.children(n),r=e.node(n);if(o.length&&o.forEach(t),r&&Object.hasOwn(r,"minRank")){r.borderLeft=[],r.borderRight=[];for(let s=r.minRank,a=r.maxRank+1;s<a;++s)Lc(e,"borderLeft","_bl",n,r,s),Lc(e,"borderRight","_br",n,r,s)}}e.children(So).forEach(t)}function Lc(e,t,n,o,r,s){let a={width:0,height:0,rank:s,borderType:t},l=r[t][s-1],c=Ct(e,"border",a,n);r[t][s]=c,e.setParent(c,o),l&&e.setEdge(l,c,{weight:1})}function Mh(e){var t;let n=(t=e.graph().rankdir)==null?void 0:t.toLowerCase();(n==="lr"||n==="rl")&&du(e)}function Fh(e){var t;let n=(t=e.graph().rankdir)==null?void 0:t.toLowerCase();(n==="bt"||n==="rl")&&Wh(e),(n==="lr"||n==="rl")&&(Uh(e),du(e))}function du(e){e.nodes().forEach(t=>Gc(e.node(t))),e.edges().forEach(t=>Gc(e.edge(t)))}function Gc(e){let t=e.width;e.width=e.height,e.height=t}function Wh(e){e.nodes().forEach(t=>As(e.node(t))),e.edges().forEach(t=>{var n;let o=e.edge(t);(n=o.points)==null||n.forEach(As),Object.hasOwn(o,"y")&&As(o)})}function As(e){e.y=-e.y}function Uh(e){e.nodes().forEach(t=>_s(e.node(t))),e.edges().forEach(t=>{var n;let o=e.edge(t);(n=o.points)==null||n.forEach(_s),Object.hasOwn(o,"x")&&_s(o)})}function _s(e){let t=e.x;e.x=e.y,e.y=t}function Bh(e,t=null){let n={},o=e.nodes().filter(d=>!e.children(d).length),r=o.map(d=>e.node(d).rank),s=De(Math.max,r),a=on(s+1).map(()=>[]);function l(d){if(n[d])return;n[d]=!0;let u=e.node(d);a[u.rank].push(d);let f=e.successors(d);f&&[...f].sort((m,p)=>c(m,p)).forEach(l)}o.sort((d,u)=>e.node(d).rank-e.node(u).rank).forEach(l);function c(d,u){let f=e.node(d),m=e.node(u);return ou(t,f,m)}return a}function Dh(e,t){let n=0;for(let o=1;o<t.length;++o)n+=Yh(e,t[o-1],t[o]);return n}function Yh(e,t,n){let o=zm(n,n.map((d,u)=>u)),r=t.flatMap(d=>{let u=e.outEdges(d);return u?u.map(f=>({pos:o[f.w],weight:e.edge(f).weight})).sort((f,m)=>f.pos-m.pos):[]}),s=1;for(;s<n.length;)s<<=1;let a=2*s-1;s-=1;let l=new Array(a).fill(0),c=0;return r.forEach(d=>{let u=d.pos+s;l[u]+=d.weight;let f=0;for(;u>0;)u%2&&(f+=l[u+1]),u=u-1>>1,l[u]+=d.weight;c+=d.weight*f}),c}function Zh(e,t=[]){return t.map(n=>{let o=e.inEdges(n);if(!o||!o.length)return{v:n};{let r=o.reduce((s,a)=>{let l=e.edge(a),c=e.node(a.v);return{sum:s.sum+l.weight*c.order,weight:s.weight+l.weight}},{sum:0,weight:0});return{v:n,barycenter:r.sum/r.weight,weight:r.weight}}})}function Kh(e,t){let n={};e.forEach((r,s)=>{let a={indegree:0,in:[],out:[],vs:[r.v],i:s};r.barycenter!==void 0&&(a.barycenter=r.barycenter,a.weight=r.weight),n[r.v]=a}),t.edges().forEach(r=>{let s=n[r.v],a=n[r.w];s!==void 0&&a!==void 0&&(a.indegree++,s.out.push(a))});let o=Object.values(n).filter(r=>!r.indegree);return jh(o)}function jh(e){let t=[];function n(r){return s=>{s.merged||(s.barycenter===void 0||r.barycenter===void 0||s.barycenter>=r.barycenter)&&$h(r,s)}}function o(r){return s=>{s.in.push(r),--s.indegree===0&&e.push(s)}}for(;e.length;){let r=e.pop();t.push(r),r.in.reverse().forEach(n(r)),r.out.forEach(o(r))}return t.filter(r=>!r.merged).map(r=>Eo(r,["vs","i","barycenter","weight"]))}function $h(e,t){let n=0,o=0;e.weight&&(n+=e.barycenter*e.weight,o+=e.weight),t.weight&&(n+=t.barycenter*t.weight,o+=t.weight),e.vs=t.vs.concat(e.vs),e.barycenter=n/o,e.weight=o,e.i=Math.min(t.i,e.i),t.merged=!0}function Xh(e,t,n,o,r){let s={},a=null,l=null,c=r;typeof t=="boolean"?(c=t,s={}):t&&(s=t,a=n??null,l=o??null);let d=Xm(e,w=>Object.hasOwn(w,"barycenter")),u=d.lhs,f=d.rhs.sort((w,v)=>v.i-w.i),m=[],p=0,h=0,y=0;u.sort(Jh(l,a,!!c));for(let[w,v]of Object.entries(s)){let N=u.findIndex(k=>k.vs[0]===w);u.splice(N+1,0,v)}y=Vc(m,f,y),u.forEach(w=>{y+=w.vs.length,m.push(w.vs),p+=w.barycenter*w.weight,h+=w.weight,y=Vc(m,f,y)});let b={vs:m.flat(1)};return h&&(b.barycenter=p/h,b.weight=h),b}function Vc(e,t,n){let o;for(;t.length&&(o=t[t.length-1]).i<=n;)t.pop(),e.push(o.vs),n++;return n}function Jh(e,t,n){return(o,r)=>{if(o.barycenter<r.barycenter)return-1;if(o.barycenter>r.barycenter)return 1;if(e&&(typeof o.vs[0]=="string"||typeof r.vs[0]=="string")){let s=e.node(o.vs[0]),a=e.node(r.vs[0]),l=ou(t,s,a);if(l!==0)return l}return n?r.i-o.i:o.i-r.i}}function pu(e,t,n,o,r){var s,a,l,c,d,u,f,m,p,h,y;let b=null,w=r;typeof o=="boolean"?(w=o,b=null):o!==void 0&&(b=o);let v=e.children(t),N=e.node(t),k=N?N.borderLeft:void 0,x=N?N.borderRight:void 0,R={};k&&(v=v.filter(S=>S!==k&&S!==x));let C=Zh(e,v);C.forEach(S=>{if(e.children(S.v).length){let{result:T}=pu(e,S.v,n,b,w);R[S.v]=T,Object.hasOwn(T,"barycenter")&&zh(S,T)}});let I=Kh(C,n);Hh(I,R);let F={},K=!1;for(let S=0;S<I.length;S++)for(let T=S+1;T<I.length;T++)if(!(!I[S]||!I[T]||!((s=I[S])!=null&&s.barycenter)||!((a=I[T])!=null&&a.barycenter))&&((l=I[S])==null?void 0:l.barycenter)===I[T].barycenter){let P=(d=(c=I[S])==null?void 0:c.vs[0])!=null?d:"",L=(f=(u=I[T])==null?void 0:u.vs[0])!=null?f:"",$=e.node(P),pt=e.node(L);if($.dummy==="edge"&&pt.dummy==="edge"&&((m=$.edgeObj)==null?void 0:m.v)===((p=pt.edgeObj)==null?void 0:p.v)&&((h=$.edgeObj)==null?void 0:h.w)===((y=pt.edgeObj)==null?void 0:y.w))if($.edgeLabel.reversed){F[L]=I[S],I.splice(S,1),S--;break}else F[P]||(F[P]=I[T],I.splice(T,1),T--);else K=!0}let U=Xh(I,F,b,e,w);if(k&&x){U.vs=[k,U.vs,x].flat(1);let S=e.predecessors(k);if(S&&S.length){let T=e.node(S[0]),P=e.predecessors(x),L=e.node(P[0]);Object.hasOwn(U,"barycenter")||(U.barycenter=0,U.weight=0),U.barycenter=(U.barycenter*U.weight+T.order+L.order)/(U.weight+2),U.weight+=2}}return Object.defineProperty(U,"result",{value:U,enumerable:!1,configurable:!0,writable:!0}),Object.defineProperty(U,"usedBias",{value:K,enumerable:!1,configurable:!0,writable:!0}),U}function Hh(e,t){e.forEach(n=>{n.vs=n.vs.flatMap(o=>t[o]?t[o].vs:o)})}function zh(e,t){e.barycenter!==void 0?(e.barycenter=(e.barycenter*e.weight+t.barycenter*t.weight)/(e.weight+t.weight),e.weight+=t.weight):(e.barycenter=t.barycenter,e.weight=t.weight)}function qh(e,t,n,o){o||(o=e.nodes());let r=Qh(e),s=new Te({compound:!0}).setGraph({root:r}).setDefaultNodeLabel(a=>e.node(a));return o.forEach(a=>{let l=e.node(a),c=e.parent(a);if(l.rank===t||l.minRank<=t&&t<=l.maxRank){s.setNode(a),s.setParent(a,c||r);let d=e[n](a);d&&d.forEach(u=>{let f=u.v===a?u.w:u.v,m=s.edge(f,a),p=m!==void 0?m.weight:0;s.setEdge(f,a,{weight:e.edge(u).weight+p})}),Object.hasOwn(l,"minRank")&&s.setNode(a,{borderLeft:l.borderLeft[t],borderRight:l.borderRight[t]})}}),s}function Qh(e){let t;for(;e.hasNode(t=Ls("_root")););return t}function eg(e,t,n){let o={},r;n.forEach(s=>{let a=e.parent(s),l,c;for(;a;){if(l=e.parent(a),l?(c=o[l],o[l]=a):(c=r,r=a),c&&c!==a){t.setEdge(c,a);return}a=l}})}function fu(e,t={},n=null){if(typeof t.customOrder=="function"){t.customOrder(e,fu);return}let o=nu(e),r=Oc(e,on(1,o+1),"inEdges"),s=Oc(e,on(o-1,-1,-1),"outEdges"),a=Bh(e,n);if(Mc(e,a),t.disableOptimalOrderHeuristic)return;let l=Number.POSITIVE_INFINITY,c,d=t.constraints||[];for(let u=0,f=0;f<4;++u,++f){tg(u%2?r:s,u%4>=2,d,n),a=ko(e);let m=Dh(e,a);m<l?(f=0,c=Object.assign({},a),l=m):m===l&&(c=structuredClone(a))}Mc(e,c)}function Oc(e,t,n){let o=new Map,r=(s,a)=>{o.has(s)||o.set(s,[]),o.get(s).push(a)};for(let s of e.nodes()){let a=e.node(s);if(typeof a.rank=="number"&&r(a.rank,s),typeof a.minRank=="number"&&typeof a.maxRank=="number")for(let l=a.minRank;l<=a.maxRank;l++)l!==a.rank&&r(l,s)}return t.map(function(s){return qh(e,s,n,o.get(s)||[])})}function tg(e,t,n,o){let r=!0,s=new Te;e.forEach(function(a){n.forEach(u=>s.setEdge(u.left,u.right));let l=a.graph().root,{result:c,usedBias:d}=pu(a,l,s,o,r);t&&d&&(r=!r),c.vs.forEach((u,f)=>a.node(u).order=f),eg(a,s,c.vs)})}function Mc(e,t){Object.values(t).forEach(n=>n.forEach((o,r)=>e.node(o).order=r))}function ng(e,t){let n={};function o(r,s){let a=0,l=0,c=r.length,d=s[s.length-1];return s.forEach((u,f)=>{let m=rg(e,u),p=m?e.node(m).order:c;(m||u===d)&&(s.slice(l,f+1).forEach(h=>{let y=e.predecessors(h);y&&y.forEach(b=>{let w=e.node(b),v=w.order;(v<a||p<v)&&!(w.dummy&&e.node(h).dummy)&&mu(n,b,h)})}),l=f+1,a=p)}),s}return t.length&&t.reduce(o),n}function og(e,t){let n={};function o(a){var l;return((l=e.node(a))==null?void 0:l.dummy)==="border"}if(!e.nodes().some(o))return n;function r(a,l,c,d,u){on(l,c).forEach(f=>{let m=a[f];if(m!==void 0&&e.node(m).dummy){let p=e.predecessors(m);p&&p.forEach(h=>{if(h===void 0)return;let y=e.node(h);y.dummy&&(y.order<d||y.order>u)&&mu(n,h,m)})}})}function s(a,l){let c=-1,d=-1,u=0;return l.forEach((f,m)=>{if(o(f)){let p=e.predecessors(f);if(p&&p.length){let h=p[0];if(h===void 0)return;d=e.node(h).order,r(l,u,m,c,d),u=m,c=d}}r(l,u,l.length,d,a.length)}),l}return t.length&&t.reduce(s),n}function rg(e,t){if(e.node(t).dummy){let n=e.predecessors(t);if(n)return n.find(o=>e.node(o).dummy)}}function mu(e,t,n){if(t>n){let r=t;t=n,n=r}let o=e[t];o||(e[t]=o={}),o[n]=!0}function sg(e,t,n){if(t>n){let r=t;t=n,n=r}let o=e[t];return o!==void 0&&Object.hasOwn(o,n)}function ag(e,t,n,o,r){let s={},a={},l={};return t.forEach(c=>{c.forEach((d,u)=>{s[d]=d,a[d]=d,l[d]=u})}),t.forEach(c=>{let d=-1,u=-1,f=!1,m=c,p=c.findIndex(h=>r?.includes(h)||Fc(h,e,r));p>0&&(m=[c[p],...c.slice(0,p),...c.slice(p+1)],f=!0),m.forEach(h=>{var y;let b=o(h);if(b&&b.length){r!=null&&r.includes(h)&&(b=b.filter(N=>Fc(N,e,r)));let w=b.sort((N,k)=>{let x=l[N],R=l[k];return(x!==void 0?x:0)-(R!==void 0?R:0)}),v=(w.length-1)/2;for(let N=Math.floor(v),k=Math.ceil(v);N<=k;++N){let x=w[N];if(x===void 0)continue;let R=l[x];if(R!==void 0&&a[h]===h&&d<R&&l[x]!==u&&!sg(n,h,x)){let C=s[x];C!==void 0&&(a[x]=h,a[h]=s[h]=C,d=R,f&&(d=-1,u=(y=l[x])!=null?y:-1,f=!1))}}}})}),{root:s,align:a}}function ig(e,t,n,o,r=!1){let s={},a=lg(e,t,n,r),l=r?"borderLeft":"borderRight";function c(p,h){let y=a.nodes().slice(),b={},w=y.pop();for(;w;){if(b[w])p(w);else{b[w]=!0,y.push(w);for(let v of h(w))y.push(v)}w=y.pop()}}function d(p){let h=a.inEdges(p);h?s[p]=h.reduce((y,b)=>{var w;let v=(w=s[b.v])!=null?w:0,N=a.edge(b);return Math.max(y,v+(N!==void 0?N:0))},0):s[p]=0}function u(p){let h=a.outEdges(p),y=Number.POSITIVE_INFINITY;h&&(y=h.reduce((w,v)=>{let N=s[v.w],k=a.edge(v);return Math.min(w,(N!==void 0?N:0)-(k!==void 0?k:0))},Number.POSITIVE_INFINITY));let b=e.node(p);y!==Number.POSITIVE_INFINITY&&b.borderType!==l&&(s[p]=Math.max(s[p]!==void 0?s[p]:0,y))}function f(p){return a.predecessors(p)||[]}function m(p){return a.successors(p)||[]}return c(d,f),c(u,m),Object.keys(o).forEach(p=>{var h;let y=n[p];y!==void 0&&(s[p]=(h=s[y])!=null?h:0)}),s}function lg(e,t,n,o){let r=new Te,s=e.graph(),a=fg(s.nodesep,s.edgesep,o);return t.forEach(l=>{let c;l.forEach(d=>{let u=n[d];if(u!==void 0){if(r.setNode(u),c!==void 0){let f=n[c];if(f!==void 0){let m=r.edge(f,u);r.setEdge(f,u,Math.max(a(e,d,c),m||0))}}c=d}})}),r}function cg(e,t){return Object.values(t).reduce((n,o)=>{let r=Number.NEGATIVE_INFINITY,s=Number.POSITIVE_INFINITY;Object.entries(o).forEach(([l,c])=>{let d=mg(e,l)/2;r=Math.max(c+d,r),s=Math.min(c-d,s)});let a=r-s;return a<n[0]&&(n=[a,o]),n},[Number.POSITIVE_INFINITY,null])[1]}function ug(e,t){let n=Object.values(t),o=De(Math.min,n),r=De(Math.max,n);["u","d"].forEach(s=>{["l","r"].forEach(a=>{let l=s+a,c=e[l];if(!c||c===t)return;let d=Object.values(c),u=o-De(Math.min,d);a!=="l"&&(u=r-De(Math.max,d)),u&&(e[l]=xo(c,f=>f+u))})})}function dg(e,t=void 0){let n=e.ul;return n?xo(n,(o,r)=>{var s,a;if(t){let c=t.toLowerCase(),d=e[c];if(d&&d[r]!==void 0)return d[r]}let l=Object.values(e).map(c=>{let d=c[r];return d!==void 0?d:0}).sort((c,d)=>c-d);return(((s=l[1])!=null?s:0)+((a=l[2])!=null?a:0))/2}):{}}function pg(e,t){let n=ko(e),o=Object.assign(ng(e,n),og(e,n)),r={},s;["u","d"].forEach(l=>{s=l==="u"?n:Object.values(n).reverse(),["l","r"].forEach(c=>{c==="r"&&(s=s.map(f=>Object.values(f).reverse()));let d=ag(e,s,o,f=>(l==="u"?e.predecessors(f):e.successors(f))||[],t),u=ig(e,s,d.root,d.align,c==="r");c==="r"&&(u=xo(u,f=>-f)),r[l+c]=u})});let a=cg(e,r);return ug(r,a),dg(r,e.graph().align)}function fg(e,t,n){return(o,r,s)=>{let a=o.node(r),l=o.node(s),c=0,d;if(c+=a.width/2,Object.hasOwn(a,"labelpos"))switch(a.labelpos.toLowerCase()){case"l":d=-a.width/2;break;case"r":d=a.width/2;break}if(d&&(c+=n?d:-d),d=void 0,c+=(a.dummy?t:e)/2,c+=(l.dummy?t:e)/2,c+=l.width/2,Object.hasOwn(l,"labelpos"))switch(l.labelpos.toLowerCase()){case"l":d=l.width/2;break;case"r":d=-l.width/2;break}return d&&(c+=n?d:-d),c}}function mg(e,t){return e.node(t).width}function Fc(e,t,n){var o;if(!n)return!1;let r=(o=t.node(e))==null?void 0:o.edgeObj;if(!r||t.node(e).edgeLabel.reversed)return!1;let s=n.indexOf(r?.v),a=n.indexOf(r?.w);return s!==-1&&a!==-1&&s===(a+1)%n.length||s===(a-1)%n.length}function hg(e,t){e=eu(e),gg(e),Object.entries(pg(e,t)).forEach(([n,o])=>e.node(n).x=o)}function gg(e){let t=ko(e),n=e.graph(),o=n.ranksep,r=n.rankalign,s=0;t.forEach(a=>{let l=a.reduce((c,d)=>{var u;let f=(u=e.node(d).height)!=null?u:0;return c>f?c:f},0);a.forEach(c=>{let d=e.node(c);r==="top"?d.y=s+d.height/2:r==="bottom"?d.y=s+l-d.height/2:d.y=s+l/2}),s+=l+o})}var Wc=new WeakMap;function hu(e,t={}){return gu(e,Jm,t),e}function Uc(e,t,n){let o=t;for(;o!==void 0;){let r=e.parent(o);if(r===n)return o;o=r}}function gu(e,t,n){var o;let r=e.nodes().filter(v=>e.children(v).length),s={};r.forEach(v=>{let N=e.node(v);if(N&&N.rankdir){let k=new Te({multigraph:!0,compound:!0});k.setGraph({rankdir:N.rankdir});let x=e.children(v);x.forEach(P=>{let L={...e.node(P)};k.setNode(P,L);let $=e.parent(P);$&&$!==v&&x.includes($)&&k.setParent(P,$)});let R=new Set;e.edges().forEach(P=>{let L=Uc(e,P.v,v),$=Uc(e,P.w,v);if(L===P.v&&$===P.w)k.setEdge(P,{...e.edge(P)});else if(L&&$&&L!==$){let pt=`${L}\0${$}`;R.has(pt)||(R.add(pt),k.setEdge(L,$,{...e.edge(P)}))}}),gu(k,t,n);let C=Kc(k);Dc(C,t,n,null),Yc(k,C);let I=1/0,F=1/0,K=-1/0,U=-1/0;k.nodes().forEach(P=>{if(P===v)return;let L=k.node(P);L&&typeof L.x=="number"&&typeof L.y=="number"&&typeof L.width=="number"&&typeof L.height=="number"&&(I=Math.min(I,L.x-L.width/2),K=Math.max(K,L.x+L.width/2),F=Math.min(F,L.y-L.height/2),U=Math.max(U,L.y+L.height/2))}),(!isFinite(I)||!isFinite(F)||!isFinite(K)||!isFinite(U))&&(I=F=0,K=U=0);let S=K-I,T=U-F;s[v]={minX:I,minY:F,maxX:K,maxY:U,width:S,height:T,offsetX:I,offsetY:F},N._dagreClusterSubgraph=k}});let a=[],l=v=>{let N=[],k=(e.children(v)||[]).filter(x=>x!==v);for(;k.length>0;){let x=k.shift();N.push(x),(e.children(x)||[]).filter(R=>R!==x).forEach(R=>k.push(R))}return N},c=new Map;r.forEach(v=>{let N=e.node(v);N&&N.rankdir&&s[v]&&c.set(v,(e.children(v)||[]).filter(k=>k!==v))});let d=new Set([...c.values()].flat()),u=new Map;c.forEach((v,N)=>{d.has(N)||u.set(N,l(N))});let f=new Set([...u.values()].flat()),m=v=>{for(let[N,k]of u)if(k.includes(v))return N;return v},p=[];e.edges().forEach(v=>{(f.has(v.v)||f.has(v.w))&&p.push({edge:v,label:e.edge(v)})});let h=new Map;f.forEach(v=>{let N=e.parent(v);h.set(v,typeof N=="string"?N:void 0)}),u.forEach((v,N)=>{let k=e.node(N),x=[];v.forEach(I=>{let F=e.node(I);F&&(x.push({id:I,node:F,parent:h.get(I)}),e.removeNode(I))});let R=p.filter(({edge:I})=>v.includes(I.v)||v.includes(I.w)),C=s[N];k&&(a.push({clusterId:N,subgraph:k._dagreClusterSubgraph,bounds:C,children:v,removedNodes:x,removedEdges:R}),k.width=C.width,k.height=C.height)});let y=new Set;p.forEach(({edge:v,label:N})=>{let k=m(v.v),x=m(v.w);if(k!==x&&e.hasNode(k)&&e.hasNode(x)){let R=`${k}\0${x}`;y.has(R)||(y.add(R),e.setEdge(k,x,{...N,width:0,height:0}))}});let b=Kc(e),w=Dc(b,t,n,(o=Wc.get(e))!=null?o:null);Wc.set(e,w),Yc(e,b),y.forEach(v=>{let N=v.indexOf("\0"),k=v.slice(0,N),x=v.slice(N+1);e.hasEdge(k,x)&&e.removeEdge(k,x)}),a.forEach(({clusterId:v,subgraph:N,bounds:k,removedNodes:x,removedEdges:R})=>{var C,I;let F=e.node(v),K=(C=F?.x)!=null?C:0,U=(I=F?.y)!=null?I:0,S=(k.minX+k.maxX)/2,T=(k.minY+k.maxY)/2;x.forEach(({id:P,node:L,parent:$})=>{e.setNode(P,L),$!==void 0&&e.setParent(P,$)}),R.forEach(({edge:P,label:L})=>{e.setEdge(P,L)}),N.nodes().forEach(P=>{if(P===v)return;let L=N.node(P),$=e.node(P);$&&L&&typeof L.x=="number"&&typeof L.y=="number"&&($.x=K+(L.x-S),$.y=U+(L.y-T))}),Bc(e,N,K-S,U-T),delete F._dagreClusterSubgraph}),r.forEach(v=>{var N,k;let x=e.node(v),R=s[v];if(x&&x.rankdir&&x._dagreClusterSubgraph&&R){let C=x._dagreClusterSubgraph,I=(N=x.x)!=null?N:0,F=(k=x.y)!=null?k:0,K=(R.minX+R.maxX)/2,U=(R.minY+R.maxY)/2;C.nodes().forEach(S=>{if(S===v)return;let T=C.node(S),P=e.node(S);if(P&&T&&typeof T.x=="number"&&typeof T.y=="number"){let L=T.x-K,$=T.y-U;P.x=I+L,P.y=F+$}}),Bc(e,C,I-K,F-U),delete x._dagreClusterSubgraph}})}function Bc(e,t,n,o){t.edges().forEach(r=>{if(!e.hasEdge(r))return;let s=t.edge(r),a=e.edge(r);a.points=s.points.map(l=>({x:l.x+n,y:l.y+o})),Object.hasOwn(s,"x")&&(a.x=s.x+n,a.y=s.y+o)})}function Dc(e,t,n,o=null){var r,s;let a=n?.useDynamic!==!1,l=a&&(r=o?.graph)!=null?r:null,c=a&&(s=o?.rawNodes)!=null?s:null;t("    makeSpaceForEdgeLabels",()=>Sg(e)),t("    removeSelfEdges",()=>Lg(e)),t("    acyclic",()=>ah(e,l)),t("    nestingGraph.run",()=>Ch(e)),t("    rank",()=>xh(eu(e))),t("    injectEdgeLabelProxies",()=>Ng(e)),t("    removeEmptyRanks",()=>jm(e)),t("    nestingGraph.cleanup",()=>Gh(e)),t("    normalizeRanks",()=>Km(e)),t("    assignRankMinMax",()=>Ag(e)),t("    removeEdgeLabelProxies",()=>_g(e)),t("    normalize.run",()=>uh(e)),t("    parentDummyChains",()=>_h(e)),t("    addBorderSegments",()=>Vh(e)),t("    order",()=>fu(e,n,c)),t("    insertSelfEdges",()=>Gg(e)),t("    adjustCoordinateSystem",()=>Mh(e)),t("    position",()=>hg(e,n.corePath)),t("    positionSelfEdges",()=>Vg(e));let d=JSON.parse(JSON.stringify(e._nodes));return t("    removeBorderNodes",()=>Pg(e)),t("    normalize.undo",()=>ph(e)),t("    fixupEdgeLabelCoords",()=>Rg(e)),t("    undoCoordinateSystem",()=>Fh(e)),t("    translateGraph",()=>Ig(e)),t("    assignNodeIntersects",()=>Tg(e)),t("    reversePoints",()=>Cg(e)),t("    acyclic.undo",()=>lh(e)),{graph:e,rawNodes:d}}function Yc(e,t){e.nodes().forEach(n=>{let o=e.node(n),r=t.node(n);o&&(o.x=r.x,o.y=r.y,o.order=r.order,o.rank=r.rank,t.children(n).length&&(o.width=r.width,o.height=r.height))}),e.edges().forEach(n=>{let o=e.edge(n),r=t.edge(n);o.points=r.points,Object.hasOwn(r,"x")&&(o.x=r.x,o.y=r.y)}),e.graph().width=t.graph().width,e.graph().height=t.graph().height}var bg=["nodesep","edgesep","ranksep","marginx","marginy"],yg={ranksep:50,edgesep:20,nodesep:50,rankdir:"TB",rankalign:"center"},wg=["acyclicer","ranker","rankdir","align","rankalign"],vg=["width","height","rank"],Zc={width:0,height:0},Eg=["minlen","weight","width","height","labeloffset"],kg={minlen:1,weight:1,width:0,height:0,labeloffset:10,labelpos:"r"},xg=["labelpos"];function Kc(e){let t=new Te({multigraph:!0,compound:!0}),n=Ts(e.graph());return t.setGraph(Object.assign({},yg,Is(n,bg),Eo(n,wg))),e.nodes().forEach(o=>{let r=Ts(e.node(o)),s=Is(r,vg);Object.keys(Zc).forEach(l=>{s[l]===void 0&&(s[l]=Zc[l])}),t.setNode(o,s);let a=e.parent(o);a!==void 0&&t.setParent(o,a)}),e.edges().forEach(o=>{let r=Ts(e.edge(o));t.setEdge(o,Object.assign({},kg,Is(r,Eg),Eo(r,xg)))}),t}function Sg(e){let t=e.graph();t.ranksep/=2,e.edges().forEach(n=>{var o;let r=e.edge(n);r.minlen*=2,((o=r.labelpos)!=null?o:"r").toLowerCase()!=="c"&&(t.rankdir==="TB"||t.rankdir==="BT"?r.width+=r.labeloffset:r.height+=r.labeloffset)})}function Ng(e){e.edges().forEach(t=>{let n=e.edge(t);if(n.width&&n.height){let o=e.node(t.v),r={rank:(e.node(t.w).rank-o.rank)/2+o.rank,e:t};Ct(e,"edge-proxy",r,"_ep")}})}function Ag(e){let t=0;e.nodes().forEach(n=>{let o=e.node(n);o.borderTop&&(o.minRank=e.node(o.borderTop).rank,o.maxRank=e.node(o.borderBottom).rank,t=Math.max(t,o.maxRank))}),e.graph().maxRank=t}function _g(e){e.nodes().forEach(t=>{let n=e.node(t);if(n.dummy==="edge-proxy"){let o=n;e.edge(o.e).labelRank=n.rank,e.removeNode(t)}})}function Ig(e){let t=Number.POSITIVE_INFINITY,n=0,o=Number.POSITIVE_INFINITY,r=0,s=e.graph(),a=s.marginx||0,l=s.marginy||0;function c(d){let u=d.x,f=d.y,m=d.width,p=d.height;t=Math.min(t,u-m/2),n=Math.max(n,u+m/2),o=Math.min(o,f-p/2),r=Math.max(r,f+p/2)}e.nodes().forEach(d=>c(e.node(d))),e.edges().forEach(d=>{let u=e.edge(d);Object.hasOwn(u,"x")&&c(u)}),t-=a,o-=l,e.nodes().forEach(d=>{let u=e.node(d);u.x-=t,u.y-=o}),e.edges().forEach(d=>{let u=e.edge(d);u.points.forEach(f=>{f.x-=t,f.y-=o}),Object.hasOwn(u,"x")&&(u.x-=t),Object.hasOwn(u,"y")&&(u.y-=o)}),s.width=n-t+a,s.height=r-o+l}function Tg(e){e.edges().forEach(t=>{if(t.v===t.w)return;let n=e.edge(t),o=e.node(t.v),r=e.node(t.w),s,a;n.points?(s=n.points[0],a=n.points[n.points.length-1]):(n.points=[],s=r,a=o),n.points.unshift(Ic(o,s)),n.points.push(Ic(r,a))})}function Rg(e){e.edges().forEach(t=>{let n=e.edge(t);if(Object.hasOwn(n,"x"))switch((n.labelpos==="l"||n.labelpos==="r")&&(n.width-=n.labeloffset),n.labelpos){case"l":n.x-=n.width/2+n.labeloffset;break;case"r":n.x+=n.width/2+n.labeloffset;break}})}function Cg(e){e.edges().forEach(t=>{let n=e.edge(t);n.reversed&&n.points.reverse()})}function Pg(e){e.nodes().forEach(t=>{if(e.children(t).length){let n=e.node(t),o=e.node(n.borderTop),r=e.node(n.borderBottom),s=e.node(n.borderLeft[n.borderLeft.length-1]),a=e.node(n.borderRight[n.borderRight.length-1]);n.width=Math.abs(a.x-s.x),n.height=Math.abs(r.y-o.y),n.x=s.x+n.width/2,n.y=o.y+n.height/2}}),e.nodes().forEach(t=>{e.node(t).dummy==="border"&&e.removeNode(t)})}function Lg(e){e.edges().forEach(t=>{if(t.v===t.w){let n=e.node(t.v);n.selfEdges||(n.selfEdges=[]),n.selfEdges.push({e:t,label:e.edge(t)}),e.removeEdge(t)}})}function Gg(e){ko(e).forEach(t=>{let n=0;t.forEach((o,r)=>{let s=e.node(o);typeof s.rank!="number"&&(s.rank=0),s.order=r+n,(s.selfEdges||[]).forEach(a=>{Ct(e,"selfedge",{width:a.label.width,height:a.label.height,rank:s.rank,order:r+ ++n,e:a.e,edgeLabel:a.label},"_se"),(!Array.isArray(a.label.points)||a.label.points.length!==7)&&(a.label.points=[{x:0,y:-10},{x:0,y:-10},{x:0,y:0},{x:0,y:10},{x:0,y:10},{x:0,y:0},{x:0,y:0}])}),delete s.selfEdges})})}function Vg(e){e.nodes().forEach(t=>{let n=e.node(t),o=r=>typeof r=="number"&&isFinite(r);if(n.dummy==="selfedge"){let r=n,s=e.node(r.e.v),a=o(s?.x)?s.x:0,l=o(s?.y)?s.y:0,c=o(s?.width)?s.width:0,d=o(s?.height)?s.height:0,u=o(n.x)?n.x:a,f=o(n.y)?n.y:l,m=c/2,p=d/2;r.edgeLabel.points=[{x:u+m,y:f-p},{x:u+m,y:f-p},{x:u,y:f},{x:u-m,y:f+p},{x:u-m,y:f+p},{x:u,y:f},{x:u,y:f}],r.edgeLabel.x=u,r.edgeLabel.y=f,e.setEdge(r.e,r.edgeLabel),e.removeNode(t)}else n&&Array.isArray(n.selfEdges)&&n.selfEdges.forEach(r=>{if(!Array.isArray(r.label.points)||r.label.points.length!==7){let s=o(n.x)?n.x:0,a=o(n.y)?n.y:0,l=o(n.width)?n.width:0,c=o(n.height)?n.height:0,d=l/2,u=c/2;r.label.points=[{x:s+d,y:a-u},{x:s+d,y:a-u},{x:s,y:a},{x:s-d,y:a+u},{x:s-d,y:a+u},{x:s,y:a},{x:s,y:a}]}})})}function Is(e,t){return xo(Eo(e,t),Number)}function Ts(e){let t={};return e&&Object.entries(e).forEach(([n,o])=>{typeof n=="string"&&(n=n.toLowerCase()),t[n]=o}),t}var Ao=e=>!e.namespace&&!e.kind&&!e.policy;function _o(e,t){let n=e.levels[t];return n==="Namespace"?!0:(n==="BackendPort"||n==="GatewayClass")&&!e.attached[t].length}function Oe(e,t){let n=[];for(let o of e.children(t))_o(e,o)?e.levels[o]==="GatewayClass"&&n.push(...Oe(e,o)):n.push(o);return n}function sn(e,t){let n=[];for(let o of e.parents(t))_o(e,o)||n.push(o);return n}function Ms(e){return e.fact("roots",()=>{let t=[];for(let o=0;o<e.names.length;o+=1)!_o(e,o)&&!sn(e,o).length&&t.push(o);let n=o=>["GatewayClass","Gateway","Service"].indexOf(e.levels[o])+1||9;return t.sort((o,r)=>n(o)-n(r)||(e.names[o]<e.names[r]?-1:1))})}function bu(e,t){if(Ao(t))return;let n=[];for(let s=0;s<e.names.length;s+=1){if(_o(e,s))continue;let{kind:a,namespace:l}=q(e.names[s]);t.namespace&&l!==t.namespace||t.kind&&a!==t.kind||t.policy&&!e.attached[s].some(c=>c.kind===t.policy)||n.push(s)}let o=new Set(n),r=s=>{let a=new Set(n),l=[...n];for(let c=l.pop();c!==void 0;c=l.pop())for(let d of s(c))a.has(d)||(a.add(d),o.add(d),l.push(d))};return r(s=>sn(e,s)),r(s=>Oe(e,s)),o}var No=110,Pt=12;function yu(e,t,n,o,r){let s=u=>!n||n.has(u),a=new Set,l=new Map,c=[],d;if(t.length){let u=[...t];for(let f of t)a.add(f);for(let f=u.shift();f!==void 0&&a.size<No/2;f=u.shift())for(let m of sn(e,f))!a.has(m)&&a.size<No/2&&(a.add(m),u.push(m));d=t}else{let u=Ms(e).filter(s);d=u.slice(0,No+(o.get(-1)??0));for(let f of d)a.add(f);u.length>d.length&&c.push({parent:-1,count:u.length-d.length})}for(;d.length;){let u=d.map(h=>Oe(e,h).filter(s)),f=new Set(u.flatMap(h=>h.slice(0,Pt)).filter(h=>!a.has(h))),m=a.size+f.size<=No,p=[];d.forEach((h,y)=>{let b=u[y];if(!b.length)return;if(r.has(h)||!m&&!o.has(h)){l.set(h,b.length);return}let w=b.slice(0,o.get(h)??Pt);for(let v of w)a.has(v)||(a.add(v),p.push(v));b.length>w.length&&c.push({parent:h,count:b.length-w.length})}),d=p}return{nodes:[...a],collapsed:l,rests:c}}function wu(e,t,n){let o=new Set([t]),r=[t],[s,a]=[0,0];for(let l=r.pop();l!==void 0;l=r.pop())for(let c of Oe(e,l))if(!(o.has(c)||n&&!n.has(c))){if(o.add(c),o.size>2e4)return{routes:s,policies:a,more:!0};e.levels[c]==="Route"&&(s+=1),a+=e.attached[c].length,r.push(c)}return{routes:s,policies:a,more:!1}}var rn=196,Lt=4;function Og(e,t,n){let o=e.attached[t].length,r=Math.min(o,Lt)+(o>Lt?1:0);return 44+(r?6+r*18:0)+(n?20:0)}function vu(e,t){let n=new Te;n.setGraph({rankdir:"LR",nodesep:12,ranksep:48,marginx:2,marginy:2}),n.setDefaultEdgeLabel(()=>({}));let o=new Set(t.nodes);for(let u of t.nodes)n.setNode(String(u),{width:rn,height:Og(e,u,t.collapsed.has(u))});for(let u of t.nodes)if(!t.collapsed.has(u))for(let f of Oe(e,u))o.has(f)&&n.setEdge(String(u),String(f));for(let u of t.rests){let f=`rest ${u.parent}`;n.setNode(f,{width:rn,height:30}),u.parent>=0&&n.setEdge(String(u.parent),f)}n.edges().length?hu(n):Mg(n);let r=new Map(t.rests.map(u=>[`rest ${u.parent}`,u])),s=n.nodes().map(u=>{let{x:f,y:m,width:p,height:h}=n.node(u),y=r.get(u);return{key:u,id:y?-1:Number(u),x:f-p/2,y:m-h/2,width:p,height:h,rest:y}}),a=new Map(s.map(u=>[u.key,u])),l=n.edges().map(({v:u,w:f})=>{let m=n.edge(u,f).points.slice(1,-1),[p,h]=[a.get(u),a.get(f)],y=[{x:p.x+p.width,y:p.y+p.height/2},{x:h.x,y:h.y+h.height/2}],b=h.x-p.x<1.8*rn?y:[y[0],...m,y[1]];return{key:`${u} ${f}`,from:Number(u),to:r.has(f)?-1:Number(f),points:Fg(b)}}),{width:c=0,height:d=0}=n.graph();return{boxes:s,edges:l,width:c,height:d}}function Mg(e){let t=e.nodes(),n=Math.max(1,Math.min(t.length,5)),o=rn+48,[r,s]=[0,0];t.forEach((a,l)=>{let c=e.node(a);l%n===0&&(r+=s+(l?12:2),s=Math.max(...t.slice(l,l+n).map(d=>e.node(d).height))),c.x=2+l%n*o+rn/2,c.y=r+c.height/2}),e.setGraph({width:n*o-44,height:r+s+2})}function Fg(e){let t=`M${tt(e[0].x)} ${tt(e[0].y)}`;for(let n=1;n<e.length;n+=1){let[o,r]=[e[n-1],e[n]],s=(o.x+r.x)/2;t+=`C${tt(s)} ${tt(o.y)} ${tt(s)} ${tt(r.y)} ${tt(r.x)} ${tt(r.y)}`}return t}var tt=e=>Math.round(e*10)/10;function ku(){let{catalog:e,error:t,read:n}=M(ce),{query:o}=M(re),r=o.get("view")??(window.innerWidth<720?"list":"graph");return i(A,{children:[i(X,{text:"Topology"}),t&&i(We,{error:t}),!e&&!t&&i(ct,{what:`Reading the topology: ${V(n,"object")} so far`}),e&&i(Wg,{catalog:e,view:r})]})}function Wg({catalog:e,view:t}){let{query:n}=M(re),o=J(()=>({namespace:n.get("ns")??"",kind:n.get("kind")??"",policy:n.get("policy")??""}),[n.get("ns"),n.get("kind"),n.get("policy")]),r=n.get("focus")??"",s=J(()=>bu(e,o),[e,o]),a=J(()=>r?e.nodes(e.canonical(r)):[],[e,r]);return i(A,{children:[i(Ug,{catalog:e}),e.truncated&&i(Z,{tone:"unknown",title:"Objects are missing here",children:i("p",{children:"Rights to single objects were left unchecked, because there are too many."})}),i(Bg,{catalog:e,filter:o,view:t}),r&&i("p",{class:"focus-line",children:[a.length?"Around ":"Not in the topology: ",i(te,{object:r})," ",i("button",{class:"link",onClick:()=>le({focus:""}),children:"show everything"})]}),s&&!s.size&&i("p",{children:"No object matches the filter."}),!e.names.length&&i("p",{children:"There are no Gateways or routes, or none that you may see."}),e.names.length===0||s&&!s.size?null:t==="list"?i(Xg,{catalog:e,kept:s,focus:a},`${r} ${JSON.stringify(o)}`):i(Yg,{catalog:e,kept:s,focus:a,filter:o},`${r} ${JSON.stringify(o)}`),i(Dg,{catalog:e,namespace:o.namespace})]})}function Ug({catalog:e}){let{incomplete:t}=M(G),n=J(()=>{let{levels:a}=fs(e),l=new Map;for(let c of e.policies){let d=tn(c.inForce);l.set(d,(l.get(d)??0)+1)}return{level:c=>a.get(c)??0,force:c=>l.get(c)??0}},[e]),o=n.force("not accepted"),r=n.force("not known"),s=n.force("no effect")+n.force("on no path");return i("ul",{class:"summary",children:[i("li",{children:V(n.level("Gateway"),"Gateway")}),i("li",{children:V(n.level("Listener"),"listener")}),i("li",{children:V(n.level("Route"),"route")}),i("li",{children:V(n.level("RouteRule"),"rule")}),i("li",{children:V(n.level("Backend"),"backend")}),i("li",{children:[i("a",{href:B(["policies"]),children:V(e.policies.length,"policy","policies")})," ",t.length>0&&i("span",{class:"badge unknown",children:"not all known"})]}),r>0&&i("li",{children:i("a",{href:B(["policies"],{force:"not known"}),children:[r," not known"]})}),o>0&&i("li",{children:i("a",{href:B(["policies"],{force:"not accepted"}),children:[o," not accepted"]})}),s>0&&i("li",{children:i("a",{href:B(["policies"],{force:n.force("no effect")?"no effect":"on no path"}),children:[s," without effect"]})})]})}function Bg({catalog:e,filter:t,view:n}){let{namespaces:o,kinds:r}=fs(e),s=J(()=>[...new Set(e.policies.map(l=>l.kind))],[e]),a=(l,c,d,u)=>i("label",{children:[l,i("select",{value:d,onChange:f=>le({[c]:f.currentTarget.value}),children:[i("option",{value:"",children:"all"}),u.map(f=>i("option",{value:f,children:fe(f)}))]})]});return i("div",{class:"filters",role:"group","aria-label":"Filter",children:[a("Namespace","ns",t.namespace,o),a("Kind","kind",t.kind,r),a("With policies of","policy",t.policy,s),!Ao(t)&&i("button",{class:"link",onClick:()=>le({ns:"",kind:"",policy:""}),children:"clear"}),i("span",{class:"segmented",role:"group","aria-label":"View",children:["graph","list"].map(l=>i("button",{"aria-pressed":n===l,onClick:()=>le({view:l}),children:l==="graph"?"Graph":"List"}))})]})}function Dg({catalog:e,namespace:t}){let n=J(()=>{let o=[];return e.levels.forEach((r,s)=>{r==="Namespace"&&e.attached[s].length&&o.push(s)}),o.filter(r=>!t||e.names[r]===`Namespace/${t}`)},[e,t]);return n.length?i("section",{"aria-label":"Policies of namespaces",children:[i("h2",{children:"Policies of namespaces"}),i("p",{class:"quiet small",children:"They apply to objects in the namespace and are not drawn above."}),i("ul",{class:"columns",children:[n.slice(0,100).map(o=>i("li",{children:[i(te,{object:e.names[o]}),i(xu,{attached:e.attached[o]})]})),n.length>100&&i("li",{children:["and ",n.length-100," more"]})]})]}):null}function xu({attached:e}){return i("ul",{class:"attached-list",children:[e.slice(0,50).map(t=>i("li",{class:t.accepted?"":"bad",children:[i(me,{kind:t.kind,policy:t})," ",i("span",{class:"quiet small",children:i(E,{children:ye(t.kind)[0]})})," ",!t.accepted&&i("span",{class:"badge bad",children:"not accepted"})]})),e.length>50&&i("li",{class:"quiet",children:["and ",e.length-50," more"]})]})}function Su(e,t){let{namespace:n,name:o,section:r}=q(e.names[t]);if(r!==void 0)return r;let s=[...e.children(t)].filter(l=>e.levels[l]==="BackendPort").map(l=>q(e.names[l]).section),a=s.length===1&&e.levels[t]==="Backend"?`:${s[0]}`:"";return`${n?`${n}/`:""}${o}${a}`}function Ws(e,t){let n=e.levels[t],{kind:o}=q(e.names[t]);return n==="Route"||n==="Backend"?o:Ge(n)}var Nu=.3;function Yg({catalog:e,kept:t,focus:n,filter:o}){let[r,s]=W(new Map),[a,l]=W(new Set),[c,d]=W(""),u=S=>[...S].flatMap(T=>T===""?[-1]:e.nodes(T)),f=J(()=>{let S=new Map([...r].flatMap(([T,P])=>u([T]).map(L=>[L,P])));return yu(e,n,t,S,new Set(u(a)))},[e,n,t,r,a]),m=J(()=>vu(e,f),[e,f]),p=J(()=>new Map([...f.collapsed.keys()].map(S=>[S,wu(e,S,t)])),[e,f,t]),h=pe(null),[y,b]=W(1),[w,v]=W(""),N=()=>{let S=h.current?.clientWidth??m.width;b(Math.max(Nu,Math.min(1,(S-2)/Math.max(1,m.width))))};bn(()=>{let T=((h.current?.clientWidth??0)-2)/Math.max(1,m.width),P=T>=1?1:Math.max(.75,T);b(P);let L=m.boxes.find($=>$.id===(n[0]??f.nodes[0]));L&&m.edges.length&&requestAnimationFrame(()=>h.current?.scrollTo(0,P*(L.y+L.height/2)-h.current.clientHeight/2+12))},[]);let k=f.nodes.find(S=>e.names[S]===c),x=J(()=>k===void 0?void 0:Zg(e,k),[e,k]),R=(S,T=Pt)=>{let P=S<0?"":e.names[S];if(s(new Map(r).set(P,T)),a.has(P)){let L=new Set(a);L.delete(P),l(L)}},C=S=>{let T=e.names[S];l(new Set(a).add(T));let P=new Map(r);P.delete(T),s(P)},I=S=>{!S.ctrlKey&&!S.metaKey||(S.preventDefault(),b(T=>Fs(T*(S.deltaY<0?1.1:1/1.1))))};z(()=>{let S=h.current;return S.addEventListener("wheel",I,{passive:!1}),()=>S.removeEventListener("wheel",I)},[]);let F=jg(h),K=S=>{let T=S.target.closest("[data-box]");if(!T)return;let P=m.boxes.find($=>$.key===T.dataset.box),L=P&&Kg(m.boxes,m.edges,P,S.key);S.key==="Enter"&&P&&P.id>=0&&e.names[P.id]===c&&(S.preventDefault(),window.location.hash=Ae(c)),L&&(S.preventDefault(),v(L.key),h.current.querySelector(`[data-box="${L.key}"]`)?.focus())},U=m.boxes.some(S=>S.key===w)?w:m.boxes[0]?.key;return i("div",{class:"graph-area",children:[i("div",{class:"graph-tools",children:[i("button",{onClick:()=>b(S=>Fs(S/1.2)),"aria-label":"Smaller",children:"−"}),i("output",{"aria-label":"Scale",children:[Math.round(y*100)," %"]}),i("button",{onClick:()=>b(S=>Fs(S*1.2)),"aria-label":"Larger",children:"+"}),i("button",{onClick:N,children:"Fit"}),i("span",{class:"quiet small",children:[V(f.nodes.length,"node")," shown. Arrow keys move; Enter selects, and opens what is selected."]})]}),i("div",{class:"graph-frame",ref:h,onKeyDown:K,...F,children:i("div",{class:"graph-size",style:{width:`${m.width*y}px`,height:`${m.height*y}px`},children:i("div",{class:"graph",style:{width:`${m.width}px`,height:`${m.height}px`,transform:`scale(${y})`},children:[i("svg",{width:m.width,height:m.height,"aria-hidden":"true",children:m.edges.map(S=>i("path",{d:S.points,class:x?x.has(S.from)&&x.has(S.to)?"lit":"dim":""},S.key))}),m.boxes.map(S=>S.rest?i("button",{"data-box":S.key,class:"graph-rest",tabIndex:S.key===U?0:-1,style:Au(S),onClick:()=>R(S.rest.parent,(r.get(S.rest.parent<0?"":e.names[S.rest.parent])??Pt)+2*Pt),children:[S.rest.count.toLocaleString("en-US")," more"]},S.key):i($g,{catalog:e,box:S,below:p.get(S.id),tone:x&&!x.has(S.id)?"dim":"",selected:S.id===k,matches:!Ao(o)&&o.policy!==""&&e.attached[S.id].some(T=>T.kind===o.policy),tabIndex:S.key===U?0:-1,onFocus:()=>v(S.key),onClick:()=>d(c===e.names[S.id]?"":e.names[S.id])},`${e.levels[S.id]} ${e.names[S.id]}`))]})})}),i("div",{class:"graph-detail","aria-live":"polite",children:k===void 0?i("p",{class:"quiet small",children:"Select a node to see its policies, and what is above and below it."}):i("div",{children:[i("p",{children:[i("span",{class:"level",children:Ws(e,k)})," ",i(te,{object:e.names[k],withKind:!1})," ",i("a",{class:"button",href:Ae(e.names[k]),children:"Explain"})," ",i("button",{onClick:()=>le({focus:e.names[k]}),children:"Focus"})," ",f.collapsed.has(k)?i("button",{onClick:()=>R(k),children:["Expand ",f.collapsed.get(k)]}):Oe(e,k).length>0&&i("button",{onClick:()=>C(k),children:"Collapse"})]}),e.attached[k].length?i(xu,{attached:e.attached[k]}):i("p",{class:"quiet small",children:"No policy is attached to it directly."})]})})]})}var Fs=e=>Math.max(Nu,Math.min(2,e)),Au=e=>({left:`${e.x}px`,top:`${e.y}px`,width:`${e.width}px`,height:`${e.height}px`});function Zg(e,t){let n=new Set([t]);for(let o of[sn,Oe]){let r=new Set([t]),s=[t];for(let a=s.pop();a!==void 0&&r.size<5e3;a=s.pop())for(let l of o(e,a))r.has(l)||(r.add(l),n.add(l),s.push(l))}return n}function Kg(e,t,n,o){let r=c=>c.sort((d,u)=>Math.abs(d.y+d.height/2-n.y-n.height/2)-Math.abs(u.y+u.height/2-n.y-n.height/2))[0],s=c=>{let d=new Set(t.map(u=>u.key.match(/^(\S+) (.+)$/).slice(1)).filter(([u,f])=>(c?u:f)===n.key).map(([u,f])=>c?f:u));return e.filter(u=>d.has(u.key))};if(o==="ArrowRight")return r(s(!0));if(o==="ArrowLeft")return r(s(!1));let a=e.filter(c=>Math.abs(c.x-n.x)<20).sort((c,d)=>c.y-d.y),l=a.indexOf(n);if(o==="ArrowDown")return a[l+1];if(o==="ArrowUp")return a[l-1];if(o==="Home")return e[0]}function jg(e){let t=pe(void 0);return{onPointerDown:n=>{if(n.pointerType!=="mouse"||n.button!==0||n.target.closest("button, a"))return;let{scrollLeft:o,scrollTop:r}=e.current;t.current={x:n.clientX,y:n.clientY,left:o,top:r}},onPointerMove:n=>{t.current&&(e.current.scrollLeft=t.current.left-(n.clientX-t.current.x),e.current.scrollTop=t.current.top-(n.clientY-t.current.y))},onPointerUp:()=>t.current=void 0,onPointerLeave:()=>t.current=void 0}}function $g(e){let{catalog:t,box:n,below:o}=e,r=t.attached[n.id],s=r.some(l=>!l.accepted),a=t.levels[n.id];return i("button",{"data-box":n.key,class:`graph-node ${r.length?"has-policies":""} ${s?"bad":""} ${e.tone} ${e.matches?"matches":""} ${a==="RouteRule"||a==="Listener"?"section":""}`,style:Au(n),tabIndex:e.tabIndex,"aria-pressed":e.selected,title:fe(t.names[n.id]),onFocus:e.onFocus,onClick:e.onClick,children:[i("span",{class:"level",children:[Ws(t,n.id)," "]}),i("span",{class:"node-name",children:i(E,{children:Su(t,n.id)})}),s&&i("span",{class:"visually-hidden",children:" not all policies are accepted"}),r.length>0&&i("span",{class:"node-policies",children:[r.slice(0,Lt).map(l=>i("span",{class:`node-policy ${l.accepted?"":"bad"}`,title:fe(`${ye(l.kind)[0]} ${qe(l)}`),children:[i(E,{children:l.name}),i("span",{class:"quiet",children:[" ",i(E,{children:ye(l.kind)[0]})]})]})),r.length>Lt&&i("span",{class:"node-policy quiet",children:[" and ",r.length-Lt," more"]})]}),o&&i("span",{class:"node-below",children:[i("span",{"aria-hidden":"true",children:"▸ "}),o.more&&"over ",o.routes>0?V(o.routes,"route"):"more below",o.policies>0&&`, ${V(o.policies,"policy","policies")}`]})]})}var Eu=50;function Xg({catalog:e,kept:t,focus:n}){let[o,r]=W(new Map),[s,a]=W(new Map),[l,c]=W(""),d=pe(null),u=x=>!t||t.has(x),f=J(()=>n.length?n:Ms(e).filter(u),[e,t,n]),m=e.names.length<150,p=[],h=(x,R,C)=>{let I=s.get(C)??Eu;x.slice(0,I).forEach((F,K)=>{let U=`${C}
${e.levels[F]} ${e.names[F]}`;p.push({key:U,id:F,depth:R,parent:C,position:K+1,siblings:x.length,more:0}),y(U,R)&&h(Oe(e,F).filter(u),R+1,U)}),x.length>I&&p.push({key:`${C}
more`,id:-1,depth:R,parent:C,position:I+1,siblings:x.length,more:x.length-I})},y=(x,R)=>o.get(x)??(m?R<4:n.length>0&&R<2);h(f,0,"");let b=(x,R)=>r(new Map(o).set(x.key,R)),w=x=>a(new Map(s).set(x.parent,(s.get(x.parent)??Eu)+200)),v=x=>{x!==void 0&&(c(x),requestAnimationFrame(()=>d.current?.querySelector('[tabindex="0"]')?.focus()))},N=p.some(x=>x.key===l)?l:p[0]?.key;return i("ul",{class:"tree",role:"tree","aria-label":"Topology",ref:d,onKeyDown:x=>{let R=p.findIndex(K=>K.key===N),C=p[R];if(!C)return;let I=C.id>=0&&Oe(e,C.id).some(u),F=I&&y(C.key,C.depth);switch(x.key){case"ArrowDown":v(p[R+1]?.key);break;case"ArrowUp":v(p[R-1]?.key);break;case"ArrowRight":I&&!F?b(C,!0):F&&v(p[R+1]?.key);break;case"ArrowLeft":F?b(C,!1):v(C.parent||void 0);break;case"Home":v(p[0]?.key);break;case"End":v(p[p.length-1]?.key);break;case"Enter":C.id<0?w(C):window.location.hash=Ae(e.names[C.id]);break;default:return}x.preventDefault()},children:p.map(x=>{if(x.id<0)return i("li",{role:"treeitem","aria-level":x.depth+1,tabIndex:x.key===N?0:-1,style:{"--depth":x.depth},onClick:()=>w(x),children:i("span",{class:"more-link",children:[V(x.more,"more","more"),": show"]})},x.key);let R=e.attached[x.id],C=Oe(e,x.id).filter(u).length,I=C>0&&y(x.key,x.depth);return i("li",{role:"treeitem","aria-level":x.depth+1,"aria-setsize":x.siblings,"aria-posinset":x.position,"aria-expanded":C?I:void 0,tabIndex:x.key===N?0:-1,style:{"--depth":x.depth},onFocus:()=>c(x.key),children:[i("span",{class:"tree-row",children:[i("span",{class:"twist","aria-hidden":"true",onClick:()=>C&&b(x,!I),children:C?I?"▾":"▸":""}),i("span",{class:"level",children:Ws(e,x.id)}),i("a",{class:"name",tabIndex:-1,href:Ae(e.names[x.id]),children:i(E,{children:Su(e,x.id)})}),C>0&&!I&&i("span",{class:"count",children:C.toLocaleString("en-US")})]}),R.length>0&&i("span",{class:"tree-policies",children:[R.slice(0,6).map(F=>i("span",{class:`tree-policy ${F.accepted?"":"bad"}`,children:[i(E,{children:qe(F)})," ",i("span",{class:"quiet",children:i(E,{children:ye(F.kind)[0]})}),!F.accepted&&i("span",{class:"badge bad",children:"not accepted"})]})),R.length>6&&i("span",{class:"quiet",children:["and ",R.length-6," more"]})]})]},x.key)})})}var _u=["protocol","host","path","method","headers","gateway","listener","port","sni","service","client","dialect","why"],Iu={HTTP:1,GRPC:2,TLS:3,TCP:4,UDP:5},Jg=/^(authorization|proxy-authorization|cookie|x-api-key)$/i,Us="";function Hg(e){return e.split(`
`).filter(t=>t.trim()).map(t=>{let n=t.indexOf(":");return n<0?{name:t.trim(),value:""}:{name:t.slice(0,n).trim(),value:t.slice(n+1).trim()}})}function Tu(){let{query:e}=M(re),t=Object.fromEntries(_u.map(l=>[l,e.get(l)??""])),n=e.toString(),[o,r]=W(t);z(()=>r({...t,headers:[t.headers,Us].filter(Boolean).join(`
`)}),[n]);let s=l=>c=>r({...o,[l]:c.currentTarget.value});return i(A,{children:[i(X,{text:"Trace a request"}),i("form",{class:"request",onSubmit:l=>{l.preventDefault();let c=o.headers.split(`
`).filter(m=>m.trim()),d=c.filter(m=>Jg.test(m.split(":")[0].trim()));Us=d.join(`
`);let u={...o,headers:c.filter(m=>!d.includes(m)).join(`
`),asked:"1",n:""},f=B(["trace"],u);f===window.location.hash&&(f=B(["trace"],{...u,n:String(Date.now())})),Nt(f)},children:[i("label",{class:"host",children:["Host",i("input",{name:"host",placeholder:"shop.example.com",spellcheck:!1,autocomplete:"off",value:o.host,onInput:s("host")})]}),i("label",{class:"grow",children:["Path",i("input",{name:"path",placeholder:"/",spellcheck:!1,autocomplete:"off",value:o.path,onInput:s("path")})]}),i("label",{children:["Method",i("input",{name:"method",class:"short",list:"methods",placeholder:"GET",spellcheck:!1,autocomplete:"off",value:o.method,onInput:s("method")}),i("datalist",{id:"methods",children:["GET","POST","PUT","PATCH","DELETE","HEAD","OPTIONS"].map(l=>i("option",{value:l}))})]}),i("label",{children:["Protocol",i("select",{name:"protocol",value:o.protocol||"HTTP",onChange:s("protocol"),children:Object.keys(Iu).map(l=>i("option",{children:l}))})]}),i("label",{class:"grow",children:["Headers, one a line",i("textarea",{name:"headers",rows:1,placeholder:"x-env: canary",spellcheck:!1,value:o.headers,onInput:s("headers")})]}),i("label",{class:"grow",children:["Why not this rule (optional)",i("input",{name:"why",placeholder:"httproute/namespace/name#rule, or rule/name",spellcheck:!1,autocomplete:"off",value:o.why,onInput:s("why")})]}),i("details",{class:"wide",open:!!(t.gateway||t.listener||t.port||t.sni||t.service||t.client||t.dialect),children:[i("summary",{children:"Where the request enters"}),i("div",{class:"request",children:[i("label",{children:["Gateway",i("input",{name:"gateway",placeholder:"namespace/name",value:o.gateway,onInput:s("gateway")})]}),i("label",{children:["Listener",i("input",{name:"listener",value:o.listener,onInput:s("listener")})]}),i("label",{children:["Port",i("input",{name:"port",class:"short",inputMode:"numeric",pattern:"[0-9]*",value:o.port,onInput:s("port")})]}),i("label",{children:["SNI",i("input",{name:"sni",value:o.sni,onInput:s("sni")})]}),i("label",{children:["Service (mesh)",i("input",{name:"service",placeholder:"namespace/name",value:o.service,onInput:s("service")})]}),i("label",{children:["Client namespace (mesh)",i("input",{name:"client",value:o.client,onInput:s("client")})]}),i("label",{children:["Dialect",i("input",{name:"dialect",placeholder:"that of the controller",value:o.dialect,onInput:s("dialect")})]})]})]}),i("p",{class:"buttons wide",children:i("button",{class:"primary",type:"submit",children:"Trace"})})]}),_u.some(l=>t[l])||e.get("asked")?i(zg,{form:t,address:n}):i("p",{class:"quiet",children:"Enter what the client sends. The answer names the rule at each Gateway that takes the request, or says why none does."})]})}function zg({form:e,address:t}){let n=xe(`trace ${t}`,o=>ao.resolveRequest({protocol:Iu[e.protocol]??1,host:e.host,path:e.path,method:e.method,headers:Hg([e.headers,Us].filter(Boolean).join(`
`)),gateway:e.gateway,listener:e.listener,port:Number(e.port)||0,sni:e.sni,service:e.service,clientNamespace:e.client,dialect:e.dialect,whyNot:e.why},{signal:o}));return ze(n.data?.resolved.map(({path:o})=>o)??[]),i(_e,{live:n,children:o=>i(A,{children:[i(we,{kinds:o.kinds,unread:o.unreadParameters}),o.whyNot.length>0&&i(nb,{misses:o.whyNot}),o.resolved.map(r=>i(qg,{resolved:r},`${r.path} ${r.port}`)),o.unresolved.length>0&&i(ob,{list:o.unresolved,also:o.resolved.length>0,address:t}),!o.resolved.length&&!o.unresolved.length&&i("p",{children:"There is no Gateway that the request could enter."})]})})}function qg({resolved:e}){let t=Se(e.path),n=t.find(s=>s.level==="Gateway")??t[0],o=e.backends.reduce((s,a)=>s+a.weight,0),r=(e.policies?.policies??[]).filter(s=>!s.inheritedOnly);return i("section",{class:"resolved","aria-label":`Rule at ${n?.label??e.path}`,children:[i("h2",{children:i(Ie,{path:e.path})}),i("dl",{class:"facts",children:[i("dt",{children:"Matched by"}),i("dd",{children:[i(E,{children:e.matched||"every request"}),e.matchIndex!==void 0&&i("span",{class:"quiet",children:[" (match ",e.matchIndex," of rule ",e.ruleIndex,")"]})]}),i("dt",{children:"Enters at"}),i("dd",{children:[e.port?`port ${e.port}`:"a port that is not known",e.dialect&&i("span",{class:"quiet",children:[", routed as ",i(E,{children:e.dialect})]})]})]}),e.refusal&&i(Z,{tone:"error",title:"The proxy refuses the request before it looks for a rule",children:i("p",{children:[i(E,{children:e.refusal}),". Unless it is configured otherwise; then the request takes this rule."]})}),i("h3",{children:["Effective policies ",i("a",{class:"small",href:$e(e.path),children:"where each value comes from"})]}),r.length?i("div",{class:"specs",children:r.map(s=>i(Ru,{policy:s}))}):i("p",{class:"quiet",children:"No policy takes effect on this rule."}),i("h3",{children:V(e.backends.length,"backend")}),!e.backends.length&&i("p",{class:"quiet",children:"The rule sends requests to no backend."}),e.backends.map(s=>i(Qg,{backend:s,total:o}))]})}function Qg({backend:e,total:t}){let n=t?Math.round(100*e.weight/t):0;return i("div",{class:"backend",children:[i("p",{children:[i("span",{class:"share","aria-hidden":"true",children:i("span",{style:{width:`${n}%`}})})," ",i("strong",{children:[n," %"]})," ",i("span",{class:"quiet",children:["weight ",e.weight]})," ",i(te,{object:e.backend})," ",e.path&&i("a",{class:"small",href:$e(e.path),children:"its path"})]}),e.reason&&i(Z,{tone:"error",title:e.reason,children:i("p",{children:"The backend is not on a path, so requests to it fail."})}),e.policies.length>0&&i("div",{class:"specs",children:e.policies.map(o=>i(Ru,{policy:o}))})]})}function Ru({policy:e}){let t=Tt(e),n=e.specJson===void 0?[]:Vl(e.specJson),r=e.origins.find(s=>s.unit==="*"||s.unit==="")??(e.origins.length>1&&e.origins.every(s=>eb(s,e.origins[0]))?e.origins[0]:void 0);return i("article",{class:"spec",children:[i("h4",{children:[i(Q,{kind:t}),r&&i("span",{class:"small",children:[i("span",{class:"quiet",children:" from "}),i(et,{kind:t,origin:r})]})]}),i(ut,{policy:e}),i(gs,{policy:e}),n.length>0&&i("table",{class:"yaml",children:i("tbody",{children:n.map(s=>{let a=r?void 0:e.origins.find(l=>l.unit===s.unit);return i("tr",{children:[i("td",{children:i("code",{children:["  ".repeat(s.indent),i(E,{children:s.text})]})}),i("td",{class:"small",children:a&&i(et,{kind:t,origin:a})})]})})})}),!n.length&&!e.listed.length&&!e.unknown&&!e.notComputed&&i("p",{class:"quiet",children:"No policy contributes a value."})]})}var eb=(e,t)=>e.object===t.object&&e.block===t.block&&JSON.stringify(e.policies.map(n=>[n.namespace,n.name]))===JSON.stringify(t.policies.map(n=>[n.namespace,n.name])),tb={NotAttached:"the route is attached to no listener",NotAddressed:"the request does not enter at this listener",ListenerHostname:"the listener does not serve this host",RouteHostname:"the route does not serve this host",UnmetCondition:"the request does not meet its conditions",OtherMatchFirst:"another match comes first",NotDecided:"it is not known",TakesRequest:"it takes the request"};function nb({misses:e}){return i("section",{"aria-label":"Why not",children:[i("h2",{children:"Why not this rule"}),i("ul",{class:"cards",children:e.map(t=>i("li",{children:[i("p",{children:[i(te,{object:`${t.route}#${t.ruleName||`#${t.ruleIndex}`}`}),t.path&&i(A,{children:[i("span",{class:"quiet",children:" at "}),i(Ie,{path:t.path})]})]}),i("p",{children:[i("span",{class:`badge ${t.reason==="TakesRequest"?"good":"part"}`,children:t.reason})," ",tb[t.reason]??""]}),t.details.length>0&&i("ul",{children:t.details.map(n=>i("li",{children:i(E,{children:n})}))})]}))})]})}function ob({list:e,also:t,address:n}){return i("section",{"aria-label":"No rule",children:[i("h2",{children:t?"Where no rule takes it":"No rule takes the request"}),i("ul",{class:"cards",children:e.map(o=>i("li",{children:[i("p",{children:[o.path&&i(Ie,{path:o.path})," ",i("span",{class:"badge part",children:o.reason})]}),i("p",{children:i(E,{children:o.message})}),o.refusal&&i("p",{children:["The proxy refuses it anyway: ",i(E,{children:o.refusal})]}),o.nearMisses.length>0&&i(A,{children:[i("p",{class:"quiet",children:"Rules that nearly match:"}),i("ul",{children:o.nearMisses.map(r=>i("li",{children:[i(te,{object:`${r.route}##${r.ruleIndex}`})," ",i("span",{class:"quiet",children:"lacks"})," ",i(E,{children:r.missing.join(", ")})," ",i("a",{class:"small",href:B(["trace"],{...Object.fromEntries(new URLSearchParams(n)),why:`${r.route}##${r.ruleIndex}`}),children:"why not"})]}))})]})]}))})]})}var rb=8;function sb(e){let t=/^(?:https?:\/\/)?((?:[a-z0-9*-]+\.)+[a-z0-9-]+(?::\d+)?|localhost(?::\d+)?)?(\/\S*)?$/i.exec(e);if(!(!t||!t[1]&&!t[2]))return{host:t[1]??"",path:t[2]??""}}function ab(e){let t=e.trim(),{catalog:n}=ce.get(),o=[];if(!t)return{options:o,more:!1};let r=sb(t);r&&o.push({key:"request",href:B(["trace"],{host:r.host,path:r.path}),type:"Trace",title:`${r.host||"any host"}${r.path}`,detail:"which rule takes this request"}),/^(gateways|gatewayclasses|namespaces|mesh)\//.test(t)&&o.push({key:"path",href:$e(t),type:"Path",title:t,detail:"effective policies of the path"});let s=n?.search(t,rb);for(let a of s?.objects??[]){let l=n.names[a],{kind:c,namespace:d,name:u,section:f}=q(l);o.push({key:`object ${l}`,href:Ae(l),type:f===void 0?c:`${Ge(n.levels[a])} of ${c}`,title:`${d?`${d}/`:""}${u}${f===void 0?"":`#${f}`}`,detail:""})}for(let a of s?.policies??[])o.push({key:`policy ${a.kind} ${a.namespace} ${a.name}`,href:_t(a.kind,a),type:ye(a.kind)[0],title:a.namespace?`${a.namespace}/${a.name}`:a.name,detail:a.accepted?"":`not accepted: ${a.reason}`});return!o.length&&/^[\w.-]+\/[^/\s]+(\/[^/\s]+)?$/.test(t)&&o.push({key:"name",href:Ae(t),type:At(q(t).kind)?"Route":"Object",title:t,detail:"open by name"}),{options:o,more:s?.more??!1}}function Cu(){let[e,t]=W(""),[n,o]=W(!1),[r,s]=W(0),a=pe(null),{catalog:l,loading:c,read:d,error:u}=M(ce),{options:f,more:m}=n?ab(e):{options:[],more:!1};z(()=>{let b=w=>{let N=w.target.closest("input, textarea, select, [contenteditable]");w.key!=="/"||N||w.ctrlKey||w.metaKey||w.altKey||(w.preventDefault(),a.current?.focus(),a.current?.select())};return document.addEventListener("keydown",b),()=>document.removeEventListener("keydown",b)},[]);let p=b=>{b&&(o(!1),t(""),a.current?.blur(),Nt(b.href))},h=b=>{if(b.key==="ArrowDown"||b.key==="ArrowUp"){b.preventDefault(),o(!0);let w=b.key==="ArrowDown"?1:-1;s(v=>f.length?(v+w+f.length)%f.length:0)}else b.key==="Enter"?(b.preventDefault(),p(f[r])):b.key==="Escape"&&(n?o(!1):a.current?.blur())},y=n&&e.trim()!=="";return i("div",{class:"search",role:"search",children:[i("input",{ref:a,type:"text",role:"combobox","aria-label":"Search objects, policies, or a host and path","aria-expanded":y,"aria-controls":"search-results","aria-autocomplete":"list","aria-activedescendant":y&&f[r]?`search-${r}`:void 0,placeholder:"Search, or a host and path",autocomplete:"off",spellcheck:!1,value:e,onInput:b=>{t(b.currentTarget.value),s(0),o(!0)},onFocus:()=>o(!0),onBlur:()=>o(!1),onKeyDown:h}),i("kbd",{"aria-hidden":"true",children:"/"}),i("div",{class:"search-panel",hidden:!y,children:[i("ul",{id:"search-results",role:"listbox","aria-label":"Results",children:f.map((b,w)=>i("li",{id:`search-${w}`,role:"option","aria-selected":w===r,class:w===r?"active":"",onMouseDown:v=>{v.preventDefault(),p(b)},onMouseMove:()=>s(w),children:[i("span",{class:"type",children:i(E,{children:b.type})}),i("span",{class:"title",children:i(E,{children:b.title})}),b.detail&&i("span",{class:"quiet small",children:i(E,{children:b.detail})})]},b.key))}),i("p",{class:"search-foot quiet small",role:"status",children:[!f.length&&l&&"Nothing has this name.",m&&"There are more: type more of the name. ",c&&`Reading names: ${V(d,"object")} so far.`,!l&&!c&&(u?"Names could not be read.":"Names are not read yet."),l?.truncated&&" Some objects are left out, because rights to them were not checked."]})]})]})}var ib=[["topology","Topology",["","topology","route","object","path","compare"]],["policies","Policies",["policies","policy"]],["trace","Trace",["trace"]],["preview","Preview",["preview"]],["findings","Findings",["findings","code"]],["assertions","Assertions",["assertions"]],["changes","Changes",["changes"]],["server","Server",["server"]]];function Pu(){let{segments:e}=M(re),t=e.join("/"),n=pe(!0);return bn(()=>{if(n.current){n.current=!1;return}window.scrollTo(0,0),document.getElementById("title")?.focus({preventScroll:!0})},[t]),i(A,{children:[i("a",{class:"skip",href:"#title",onClick:o=>{o.preventDefault(),document.getElementById("title")?.focus()},children:"Skip to the content"}),i(ub,{current:e[0]??""}),i("main",{children:i(lb,{segments:e})},t),i(hb,{})]})}function lb({segments:e}){let{denied:t}=M(G);return i(A,{children:[t&&i(Z,{tone:"error",title:"Your account may not use this service",children:[i("p",{children:i(E,{children:t})}),i("p",{children:["Ask whoever runs the server for access: docs/console.md of entail says which rights an account needs."," ",i(Lu,{children:"Enter another token"})]})]}),i(cb,{segments:e})]})}function cb({segments:e}){let[t="topology",...n]=e;switch(t){case"topology":return i(ku,{});case"route":case"object":return i(ys,{name:ec(n),isPath:!1});case"path":return i(ys,{name:n.join("/"),isPath:!0});case"policy":return i(kc,{kind:n[0]??"",namespace:n.length>2?n[1]:"",name:n[n.length-1]??""});case"policies":return i(vc,{});case"compare":return i(bc,{});case"trace":return i(Tu,{});case"preview":return i(Sc,{});case"findings":return i(yc,{});case"code":return i(ic,{code:n[0]??""});case"assertions":return i(rc,{});case"changes":return i(sc,{});case"server":return i(Nc,{});default:return i(A,{children:[i(X,{text:"No such page"}),i("p",{children:i("a",{href:B([]),children:"Go to the topology"})})]})}}function ub({current:e}){let t=db(e==="changes");return i("header",{children:[i("div",{class:"bar",children:[i("a",{class:"brand",href:B([]),children:"entail"}),i(Cu,{}),i(fb,{})]}),i("nav",{"aria-label":"Pages",children:i("ul",{children:ib.map(([n,o,r])=>i("li",{children:i("a",{href:B([n]),"aria-current":r.includes(e)?"page":void 0,children:[o," ",n==="changes"&&t>0&&i("span",{class:"badge live","aria-label":V(t,"new change"),children:t})]})}))})}),i(mb,{})]})}function db(e){let t=M(St),[n,o]=W(0),r=t[0]?.id??0;return z(()=>{e&&o(r)},[e,r]),e?0:t.filter(s=>s.id>n).length}var pb={connecting:["Connecting","No answer yet"],streaming:["Live","Changes arrive over a stream"],polling:["Polling","The console asks for changes every few seconds"],lost:["No connection","The server does not answer. What you see is the last answer."]};function fb(){let{connection:e,syncedAt:t,lostSince:n,failure:o,token:r,status:s}=M(G),[a,l]=W(Date.now());z(()=>{let f=window.setInterval(()=>l(Date.now()),1e3);return()=>window.clearInterval(f)},[]);let[c,d]=r!=="unneeded"?["Token needed","The server demands a token"]:pb[e];return i("div",{class:"freshness",children:[i("span",{class:`connection ${r!=="unneeded"||e==="lost"?"bad":e==="streaming"?"good":""}`,title:e==="lost"?`${d} ${o}`:d,children:[i("span",{class:"dot","aria-hidden":"true"}),i("span",{id:"connection",role:"status",children:c}),e==="lost"&&n>0&&i("span",{class:"small",children:[" for ",ls(a-n)]})]}),i("span",{class:"age",title:"When the server last knew that it had seen all changes. For manifests: when it last read one.",children:t?i(A,{children:["in sync ",Qe(t),", ",i("span",{id:"age",children:ls(a-t)})," ago"]}):"age of the data not known"}),($r()||r!=="unneeded")&&i(Lu,{children:"Token"}),s&&i("span",{class:"visually-hidden",children:V(s.paths,"path")})]})}function mb(){let{incomplete:e,status:t}=M(G);if(!e.length)return null;let n=[...new Set(e.map(o=>o.state))].join(", ");return i("details",{class:"strip",open:e.length<3&&t!==void 0,children:[i("summary",{children:[i("strong",{children:e.some(({kind:o})=>o===lt)?"Some input is not read":`${V(e.length,"kind is","kinds are")} not completely known`})," ","(",n,")"]}),i(is,{kinds:e})]})}function Lu({children:e}){return i("button",{class:"link",onClick:()=>document.getElementById("token-dialog").showModal(),children:e})}function hb(){let{token:e}=M(G),[t,n]=W(""),[o,r]=W(!0),s=pe(null);return z(()=>{e!=="unneeded"&&!s.current.open&&s.current.showModal(),e==="unneeded"&&s.current.open&&s.current.close()},[e]),i("dialog",{id:"token-dialog",ref:s,"aria-labelledby":"token-title",children:i("form",{onSubmit:l=>{l.preventDefault(),t.trim()&&(Xr(t,o),n(""),s.current.close())},children:[i("h2",{id:"token-title",children:"Token"}),e==="refused"&&i("p",{class:"error",role:"alert",children:"The server does not accept this token. It may have expired."}),i("p",{children:"The server shows each account the objects that it may read. Enter a token of yours, for example from:"}),i("pre",{children:"kubectl create token NAME -n NAMESPACE"}),i("label",{children:["Bearer token",i("input",{type:"password",autocomplete:"off",spellcheck:!1,value:t,onInput:l=>n(l.currentTarget.value)})]}),i("label",{class:"check",children:[i("input",{type:"checkbox",checked:o,onChange:l=>r(l.currentTarget.checked)}),"Keep it until this tab is closed"]}),i("p",{class:"quiet small",children:"It is sent to this server alone, and never part of an address."}),i("p",{class:"buttons",children:[i("button",{class:"primary",type:"submit",children:"Use token"}),$r()&&i("button",{type:"button",onClick:()=>{Xr("",!1),s.current.close()},children:"Forget the token"}),i("button",{type:"button",onClick:()=>s.current.close(),children:"Cancel"}),e!=="unneeded"&&i("button",{type:"button",class:"link",onClick:xt,children:"Ask again without"})]})]})})}Ql();uc();xt();Qs(i(Pu,{}),document.getElementById("app"));})();
